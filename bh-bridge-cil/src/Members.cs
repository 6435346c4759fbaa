// Operations of arrays that do not follow the pattern of the others.
using System;
using System.Numerics;
using System.Runtime.CompilerServices;

namespace Bh
{
    public sealed partial class NdArray<T>
    {
        /// <summary>Negative.</summary>
        public static NdArray<T> operator -(NdArray<T> a) => Operation.Negative(a, Place.OfOperator());

        /// <summary>Bitwise complement; logical not for bool.</summary>
        public static NdArray<T> operator ~(NdArray<T> a) => Operation.Unary(Opcode.Invert, a);

        /// <summary>Logical not.</summary>
        public static NdArray<bool> operator !(NdArray<T> a)
        {
            Place place = Place.OfOperator();
            return Operation.Run<bool, T>(Opcode.Equal, 0, null, place, a, default(T));
        }

        /// <summary>Power; as products for the whole exponents from 2 to 5.</summary>
        public NdArray<T> Pow(int exponent, NdArray<T> output = null, [CallerFilePath] string file = "",
            [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            if (exponent < 2 || exponent > 5)
            {
                throw Fail.With(Status.Argument, "the whole exponent " + exponent + " is not from 2 to 5: use Power", place);
            }
            return Operation.Run<T, T>(Opcode.Powi, (ushort)exponent, output, place, this);
        }

        /// <summary>Power.</summary>
        public NdArray<T> Pow(NdArray<T> exponent, NdArray<T> output = null, [CallerFilePath] string file = "",
            [CallerLineNumber] int line = 0) => Power(exponent, output, file, line);

        /// <summary>An array of its own with the same elements.</summary>
        public NdArray<T> Clone([CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Operation.Run<T, T>(Opcode.Copy, 0, null, new Place(file, line), this);

        /// <summary>Overwrites all elements with those of `value`, which is stretched to the shape.</summary>
        public void Set(NdArray<T> value, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Assign(Operation.Need(value, "the value", new Place(file, line)), new Place(file, line));

        private void Assign(NdArray<T> value, Place place)
        {
            IntPtr source = value.Operand(place);
            Operation.Record(Opcode.Copy, 0, this, place, -1, new[] { source });
            GC.KeepAlive(value);
        }

        /// <summary>The one element of an array of one element; waits for it.</summary>
        public T Take([CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            if (isNumber) return number;
            var place = new Place(file, line);
            IntPtr one = Handle(place);
            Element<T>.Type(place);
            Reclaim.BeforeBatch();
            place.Note();
            T value = Element<T>.Read(one, place);
            GC.KeepAlive(this);
            return value;
        }

        /// <summary>Are all true?</summary>
        public bool All([CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Truth(file, line).Logical(Opcode.LogicalAndReduce, new Place(file, line));

        /// <summary>Is any true?</summary>
        public bool Any([CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Truth(file, line).Logical(Opcode.LogicalOrReduce, new Place(file, line));

        private NdArray<bool> Truth(string file, int line) => this as NdArray<bool> ?? Cast<bool>(file, line);

        private T Logical(Opcode opcode, Place place) =>
            Operation.Reduce(opcode, this, Axis.All, null, place).Take(place.File, place.Line);

        /// <summary>The modulus of complex numbers.</summary>
        public NdArray<double> Magnitude([CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Part(Opcode.Absolute, new Place(file, line));

        /// <summary>The real parts of complex numbers.</summary>
        public NdArray<double> Real([CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Part(Opcode.Real, new Place(file, line));

        /// <summary>The imaginary parts of complex numbers.</summary>
        public NdArray<double> Imaginary([CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Part(Opcode.Imag, new Place(file, line));

        private NdArray<double> Part(Opcode opcode, Place place)
        {
            if (!Element<T>.IsComplex) throw Fail.With(Status.Type, "the numbers are not complex", place);
            return Operation.Run<double, T>(opcode, 0, null, place, this);
        }
    }

    /// <summary>Functions of several arrays.</summary>
    public static class Functions
    {
        /// <summary>Elements of `yes` where the mask is true, else of `no`.</summary>
        public static NdArray<T> Where<T>(NdArray<bool> mask, NdArray<T> yes, NdArray<T> no, NdArray<T> output = null,
            [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            Operation.Need(mask, "the mask", place);
            Operation.Need(yes, "the second operand", place);
            Operation.Need(no, "the third operand", place);
            var inputs = new[] { mask.Handle(place), yes.Operand(place), no.Operand(place) };
            var result = Operation.Record(Opcode.Where, 0, output, place, -1, inputs);
            GC.KeepAlive(mask);
            GC.KeepAlive(yes);
            GC.KeepAlive(no);
            return result;
        }

        /// <summary>The elements at flat positions.</summary>
        public static NdArray<T> Gather<T>(NdArray<T> source, NdArray<long> index, NdArray<T> output = null,
            [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            Operation.Need(source, "the source", place);
            Operation.Need(index, "the index", place);
            var result = Operation.Record(Opcode.Gather, 0, output, place, -1, new[] { source.Handle(place), index.Handle(place) });
            GC.KeepAlive(source);
            GC.KeepAlive(index);
            return result;
        }

        /// <summary>The matrix product; either may be a vector.</summary>
        public static NdArray<T> MatMul<T>(NdArray<T> a, NdArray<T> b, NdArray<T> output = null,
            [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            Operation.Need(a, "the left operand", place);
            Operation.Need(b, "the right operand", place);
            if (a.Rank < 1 || a.Rank > 2 || b.Rank < 1 || b.Rank > 2)
            {
                throw Fail.With(Status.Shape, "no matrix product of shapes " + a.Shape + " and " + b.Shape, place);
            }
            var extents = new System.Collections.Generic.List<long>();
            if (a.Rank == 2) extents.Add(a.Shape[0]);
            if (b.Rank == 2) extents.Add(b.Shape[1]);
            output = output ?? Create.Empty<T>(extents.ToArray(), place.File, place.Line);
            return Into(output, place, a, b, Native.bh_matmul);
        }

        /// <summary>The solution x of a·x = b.</summary>
        public static NdArray<T> Solve<T>(NdArray<T> a, NdArray<T> b, NdArray<T> output = null,
            [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            Operation.Need(a, "the matrix", place);
            Operation.Need(b, "the right side", place);
            return Into(output ?? Create.Empty<T>(b.Shape, file, line), place, a, b, Native.bh_solve);
        }

        /// <summary>The elements in ascending order along the last axis.</summary>
        public static NdArray<T> Sort<T>(NdArray<T> a, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            Operation.Need(a, "the operand", place);
            return Into(Create.Empty<T>(a.Shape, file, line), place, a, a, (result, from, same) => Native.bh_sort(result, from));
        }

        /// <summary>The discrete Fourier transform along the last axis.</summary>
        public static NdArray<Complex> Fft(NdArray<Complex> a, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            Operation.Need(a, "the operand", place);
            return Into(Create.Empty<Complex>(a.Shape, file, line), place, a, a, (result, from, same) => Native.bh_fft(result, from));
        }

        /// <summary>The inverse of `Fft`.</summary>
        public static NdArray<Complex> InverseFft(NdArray<Complex> a, [CallerFilePath] string file = "",
            [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            Operation.Need(a, "the operand", place);
            return Into(Create.Empty<Complex>(a.Shape, file, line), place, a, a, (result, from, same) => Native.bh_ifft(result, from));
        }

        private static NdArray<T> Into<T>(NdArray<T> output, Place place, NdArray<T> a, NdArray<T> b,
            Func<IntPtr, IntPtr, IntPtr, int> call)
        {
            IntPtr written = Operation.Writable(output, place), first = a.Handle(place), second = b.Handle(place);
            place.Note();
            Fail.Check(call(written, first, second), place);
            GC.KeepAlive(output);
            GC.KeepAlive(a);
            GC.KeepAlive(b);
            return output;
        }
    }
}
