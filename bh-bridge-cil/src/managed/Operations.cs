// Operations on elements, run by run: elements come into buffers, are computed there, and go back.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Numerics;

namespace Bh.Managed
{
    internal static class Operations
    {
        private static readonly Dictionary<Opcode, Func<double, double>> OfReal = new Dictionary<Opcode, Func<double, double>>
        {
            { Opcode.Absolute, Math.Abs }, { Opcode.Sign, x => double.IsNaN(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0 },
            { Opcode.Cos, Math.Cos }, { Opcode.Sin, Math.Sin }, { Opcode.Tan, Math.Tan }, { Opcode.Cosh, Math.Cosh },
            { Opcode.Sinh, Math.Sinh }, { Opcode.Tanh, Math.Tanh }, { Opcode.Arcsin, Math.Asin }, { Opcode.Arccos, Math.Acos },
            { Opcode.Arctan, Math.Atan }, { Opcode.Arcsinh, Mathematics.Asinh }, { Opcode.Arccosh, Mathematics.Acosh },
            { Opcode.Arctanh, Mathematics.Atanh }, { Opcode.Exp, Math.Exp }, { Opcode.Exp2, x => Math.Pow(2, x) },
            { Opcode.Expm1, Mathematics.Expm1 }, { Opcode.Log, Math.Log }, { Opcode.Log2, x => Math.Log(x, 2) },
            { Opcode.Log10, Math.Log10 }, { Opcode.Log1p, Mathematics.Log1p }, { Opcode.Sqrt, Math.Sqrt }, { Opcode.Ceil, Math.Ceiling },
            { Opcode.Trunc, Math.Truncate }, { Opcode.Floor, Math.Floor }, { Opcode.Rint, x => Math.Round(x, MidpointRounding.ToEven) },
            { Opcode.Erf, Mathematics.Erf }, { Opcode.Erfc, Mathematics.Erfc }, { Opcode.Cbrt, Mathematics.Cbrt },
        };

        private static readonly Dictionary<Opcode, Func<double, double, double>> OfReals = new Dictionary<Opcode, Func<double, double, double>>
        {
            { Opcode.Add, (a, b) => a + b }, { Opcode.Subtract, (a, b) => a - b }, { Opcode.Multiply, (a, b) => a * b },
            { Opcode.Divide, (a, b) => a / b }, { Opcode.FloorDivide, Mathematics.FloorDivide }, { Opcode.Fmod, (a, b) => a % b },
            { Opcode.Remainder, Mathematics.Remainder }, { Opcode.Power, Math.Pow }, { Opcode.Arctan2, Math.Atan2 },
            { Opcode.Maximum, (a, b) => double.IsNaN(a) || a >= b ? a : b }, { Opcode.Minimum, (a, b) => double.IsNaN(a) || a <= b ? a : b },
        };

        private static readonly Dictionary<Opcode, Func<Complex, Complex>> OfComplex = new Dictionary<Opcode, Func<Complex, Complex>>
        {
            { Opcode.Conj, Complex.Conjugate }, { Opcode.Sign, z => z == Complex.Zero ? z : z / z.Magnitude },
            { Opcode.Cos, Complex.Cos }, { Opcode.Sin, Complex.Sin }, { Opcode.Tan, Complex.Tan }, { Opcode.Cosh, Complex.Cosh },
            { Opcode.Sinh, Complex.Sinh }, { Opcode.Tanh, Complex.Tanh }, { Opcode.Arcsin, Complex.Asin }, { Opcode.Arccos, Complex.Acos },
            { Opcode.Arctan, Complex.Atan }, { Opcode.Arcsinh, z => Complex.ImaginaryOne * Complex.Asin(-Complex.ImaginaryOne * z) },
            { Opcode.Arccosh, z => Complex.Log(z + Complex.Sqrt(z + 1) * Complex.Sqrt(z - 1)) },
            { Opcode.Arctanh, z => 0.5 * (Complex.Log(1 + z) - Complex.Log(1 - z)) }, { Opcode.Exp, Complex.Exp },
            { Opcode.Exp2, z => Complex.Exp(z * Math.Log(2)) }, { Opcode.Expm1, z => Complex.Exp(z) - 1 }, { Opcode.Log, Complex.Log },
            { Opcode.Log2, z => Complex.Log(z) / Math.Log(2) }, { Opcode.Log10, Complex.Log10 }, { Opcode.Log1p, z => Complex.Log(1 + z) },
            { Opcode.Sqrt, Complex.Sqrt },
        };

        private static readonly Dictionary<Opcode, Func<Complex, Complex, Complex>> OfComplexes =
            new Dictionary<Opcode, Func<Complex, Complex, Complex>>
        {
            { Opcode.Add, Complex.Add }, { Opcode.Subtract, Complex.Subtract }, { Opcode.Multiply, Complex.Multiply },
            { Opcode.Divide, Complex.Divide }, { Opcode.Power, Complex.Pow },
        };

        /// <summary>An operation on elements; inputs are stretched to the output's shape.</summary>
        internal static void Run(Opcode opcode, ushort param, View output, View[] inputs)
        {
            var target = Apart(output, inputs, true);
            var views = new[] { target }.Concat(inputs.Select(input => input.StretchedTo(output.Shape))).ToArray();
            var buffers = views.Select(view => new Buffer(Types.KindOf(view.Type))).ToArray();
            Walk.Runs(output.Shape, views, (starts, strides, count) =>
            {
                for (int v = 1; v < views.Length; v++) buffers[v].Load(views[v], starts[v], strides[v], count);
                Compute(opcode, param, views, buffers, count);
                buffers[0].Store(target, starts[0], strides[0], count);
            });
            Finish(output, target);
        }

        /// <summary>Copies what was computed apart to the output.</summary>
        internal static void Finish(View output, View target)
        {
            if (target == output) return;
            Run(Opcode.Copy, 0, output, new[] { target });
            target.Block.Release();
        }

        /// <summary>The output, or a new array of its form if writing it would change inputs that are still to be read.</summary>
        internal static View Apart(View output, View[] inputs, bool mayBeSame)
        {
            bool isShared = inputs.Any(input => input.Block == output.Block && !(mayBeSame && input.IsSame(output)));
            return isShared ? View.New(output.Type, output.Shape) : output;
        }

        /// <summary>The operation on buffers: the first is the result's, the others are the inputs'.</summary>
        private static void Compute(Opcode opcode, ushort param, View[] views, Buffer[] buffers, int count)
        {
            Buffer result = buffers[0], first = buffers[1];
            if (opcode == Opcode.Copy) first.Convert(views[1].Type, views[0].Type, result, count);
            else if (opcode == Opcode.Where) Choose(buffers, count);
            else if (opcode == Opcode.Powi) Powi(first, param, result, count);
            else if (opcode >= Opcode.Isnan && opcode <= Opcode.Isfinite) Classify(opcode, first, result.Wholes, count);
            else if (opcode == Opcode.Signbit)
            {
                for (int i = 0; i < count; i++) result.Wholes[i] = BitConverter.DoubleToInt64Bits(first.Reals[i]) < 0 ? 1 : 0;
            }
            else if (opcode >= Opcode.Greater && opcode <= Opcode.NotEqual) Compare(opcode, views[1].Type, first, buffers[2], result.Wholes, count);
            else if (first.Kind == Kind.Whole) Whole(opcode, views[1].Type, first.Wholes, buffers.Length > 2 ? buffers[2].Wholes : null, result.Wholes, count);
            else if (first.Kind == Kind.Real) Real(opcode, first.Reals, buffers.Length > 2 ? buffers[2].Reals : null, result.Reals, count);
            else Pairs(opcode, first.Pairs, buffers.Length > 2 ? buffers[2].Pairs : null, result, count);
        }

        private static void Real(Opcode opcode, double[] a, double[] b, double[] result, int count)
        {
            switch (opcode)
            {
                case Opcode.Add: for (int i = 0; i < count; i++) result[i] = a[i] + b[i]; return;
                case Opcode.Subtract: for (int i = 0; i < count; i++) result[i] = a[i] - b[i]; return;
                case Opcode.Multiply: for (int i = 0; i < count; i++) result[i] = a[i] * b[i]; return;
                case Opcode.Divide: for (int i = 0; i < count; i++) result[i] = a[i] / b[i]; return;
            }
            if (b == null)
            {
                var function = OfReal[opcode];
                for (int i = 0; i < count; i++) result[i] = function(a[i]);
            }
            else
            {
                var function = OfReals[opcode];
                for (int i = 0; i < count; i++) result[i] = function(a[i], b[i]);
            }
        }

        private static void Pairs(Opcode opcode, Complex[] a, Complex[] b, Buffer result, int count)
        {
            switch (opcode)
            {
                case Opcode.Absolute: for (int i = 0; i < count; i++) result.Reals[i] = a[i].Magnitude; return;
                case Opcode.Real: for (int i = 0; i < count; i++) result.Reals[i] = a[i].Real; return;
                case Opcode.Imag: for (int i = 0; i < count; i++) result.Reals[i] = a[i].Imaginary; return;
            }
            if (b == null)
            {
                var function = OfComplex[opcode];
                for (int i = 0; i < count; i++) result.Pairs[i] = function(a[i]);
            }
            else
            {
                var function = OfComplexes[opcode];
                for (int i = 0; i < count; i++) result.Pairs[i] = function(a[i], b[i]);
            }
        }

        private static void Whole(Opcode opcode, ElementType type, long[] a, long[] b, long[] result, int count)
        {
            int bits = 8 * Types.Size(type);
            bool isUnsigned = type >= ElementType.U8, isBool = type == ElementType.Bool, isLong = type == ElementType.U64;
            for (int i = 0; i < count; i++)
            {
                long x = a[i], y = b == null ? 0 : b[i];
                result[i] = unchecked(isBool ? Truth(opcode, x, y) : isLong ? Long(opcode, x, y) : Signed(opcode, x, y, bits, isUnsigned));
            }
        }

        private static long Truth(Opcode opcode, long a, long b)
        {
            switch (opcode)
            {
                case Opcode.Add: case Opcode.LogicalOr: case Opcode.BitwiseOr: case Opcode.Maximum: return a | b;
                case Opcode.Multiply: case Opcode.LogicalAnd: case Opcode.BitwiseAnd: case Opcode.Minimum: return a & b;
                case Opcode.LogicalXor: case Opcode.BitwiseXor: return a ^ b;
                case Opcode.LogicalNot: case Opcode.Invert: return 1 - a;
                default: throw Lacking(opcode);
            }
        }

        /// <summary>Unsigned numbers of 64 bits where these differ from signed ones.</summary>
        private static long Long(Opcode opcode, long a, long b)
        {
            ulong x = unchecked((ulong)a), y = unchecked((ulong)b);
            switch (opcode)
            {
                case Opcode.Divide: case Opcode.FloorDivide: return y == 0 ? 0 : unchecked((long)(x / y));
                case Opcode.Fmod: case Opcode.Remainder: return y == 0 ? 0 : unchecked((long)(x % y));
                case Opcode.Absolute: return a;
                case Opcode.Sign: return a == 0 ? 0 : 1;
                case Opcode.Maximum: return x >= y ? a : b;
                case Opcode.Minimum: return x <= y ? a : b;
                default: return Signed(opcode, a, b, 64, true);
            }
        }

        private static long Signed(Opcode opcode, long a, long b, int bits, bool isUnsigned)
        {
            unchecked
            {
                switch (opcode)
                {
                    case Opcode.Add: return a + b;
                    case Opcode.Subtract: return a - b;
                    case Opcode.Multiply: return a * b;
                    case Opcode.Divide: case Opcode.FloorDivide: return Mathematics.Divide(a, b);
                    case Opcode.Fmod: return Mathematics.Modulo(a, b);
                    case Opcode.Remainder: return Mathematics.Remainder(a, b);
                    case Opcode.Power: return Mathematics.Power(a, b, isUnsigned);
                    case Opcode.Absolute: return a < 0 ? -a : a;
                    case Opcode.Sign: return Math.Sign(a);
                    case Opcode.Maximum: return Math.Max(a, b);
                    case Opcode.Minimum: return Math.Min(a, b);
                    case Opcode.BitwiseAnd: return a & b;
                    case Opcode.BitwiseOr: return a | b;
                    case Opcode.BitwiseXor: return a ^ b;
                    case Opcode.Invert: return ~a;
                    case Opcode.LeftShift: return Mathematics.ShiftLeft(a, b, bits);
                    case Opcode.RightShift: return Mathematics.ShiftRight(a, b, bits, isUnsigned);
                    default: throw Lacking(opcode);
                }
            }
        }

        internal static Failure Lacking(Opcode opcode) =>
            new Failure(Status.Unsupported, "the managed engine has no " + opcode + "; bh's own library has");

        private static void Compare(Opcode opcode, ElementType type, Buffer a, Buffer b, long[] result, int count)
        {
            for (int i = 0; i < count; i++)
            {
                bool isLess, isEqual, isGreater;
                if (a.Kind == Kind.Real)
                {
                    double x = a.Reals[i], y = b.Reals[i];
                    isLess = x < y;
                    isEqual = x == y;
                    isGreater = x > y;
                }
                else if (a.Kind == Kind.Complex)
                {
                    isEqual = a.Pairs[i] == b.Pairs[i];
                    isLess = isGreater = false;
                }
                else
                {
                    // The order of unsigned numbers is that of signed ones whose first bit is turned.
                    long turn = type == ElementType.U64 ? long.MinValue : 0, x = a.Wholes[i] ^ turn, y = b.Wholes[i] ^ turn;
                    isLess = x < y;
                    isEqual = x == y;
                    isGreater = x > y;
                }
                bool found = opcode == Opcode.Less ? isLess : opcode == Opcode.LessEqual ? isLess || isEqual
                    : opcode == Opcode.Greater ? isGreater : opcode == Opcode.GreaterEqual ? isGreater || isEqual
                    : opcode == Opcode.Equal ? isEqual : !isEqual;
                result[i] = found ? 1 : 0;
            }
        }

        private static void Classify(Opcode opcode, Buffer a, long[] result, int count)
        {
            Func<double, bool> isSo = opcode == Opcode.Isnan ? (Func<double, bool>)double.IsNaN : double.IsInfinity;
            Func<double, bool> isOdd = opcode == Opcode.Isfinite ? x => double.IsNaN(x) || double.IsInfinity(x) : isSo;
            for (int i = 0; i < count; i++)
            {
                bool found = a.Kind == Kind.Real && isOdd(a.Reals[i])
                    || a.Kind == Kind.Complex && (isOdd(a.Pairs[i].Real) || isOdd(a.Pairs[i].Imaginary));
                result[i] = found != (opcode == Opcode.Isfinite) ? 1 : 0;
            }
        }

        private static void Choose(Buffer[] buffers, int count)
        {
            Buffer result = buffers[0], first = buffers[2], second = buffers[3];
            long[] mask = buffers[1].Wholes;
            for (int i = 0; i < count; i++)
            {
                Buffer chosen = mask[i] != 0 ? first : second;
                if (result.Kind == Kind.Whole) result.Wholes[i] = chosen.Wholes[i];
                else if (result.Kind == Kind.Real) result.Reals[i] = chosen.Reals[i];
                else result.Pairs[i] = chosen.Pairs[i];
            }
        }

        /// <summary>x², x²·x, x²·x² and x⁴·x, in this order of products.</summary>
        private static void Powi(Buffer a, ushort exponent, Buffer result, int count)
        {
            for (int i = 0; i < count; i++)
            {
                if (a.Kind == Kind.Whole) result.Wholes[i] = Mathematics.Power(a.Wholes[i], exponent, true);
                else if (a.Kind == Kind.Real) result.Reals[i] = Power(a.Reals[i], exponent, (x, y) => x * y);
                else result.Pairs[i] = Power(a.Pairs[i], exponent, Complex.Multiply);
            }
        }

        private static T Power<T>(T x, ushort exponent, Func<T, T, T> multiply)
        {
            T square = multiply(x, x), power = exponent >= 4 ? multiply(square, square) : square;
            return exponent % 2 == 0 ? power : multiply(power, x);
        }
    }
}
