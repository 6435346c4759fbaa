// Methods besides operations on elements: products of matrices, solutions, sorting, transforms, elements at subscripts, random numbers.
using System;
using System.Linq;
using System.Numerics;

namespace Bh.Managed
{
    internal static class Methods
    {
        private static void Need(bool holds, Status status, string text)
        {
            if (!holds) throw new Failure(status, text);
        }

        /// <summary>The product of matrices and vectors.</summary>
        internal static void MatMul(View output, View a, View b)
        {
            Need(a.Type == b.Type && a.Type == output.Type, Status.Type, "matmul: operands of different types");
            bool areRanks = a.Rank >= 1 && a.Rank <= 2 && b.Rank >= 1 && b.Rank <= 2;
            Need(areRanks && a.Shape[a.Rank - 1] == b.Shape[0], Status.Shape,
                "matmul: the shapes " + View.Show(a.Shape) + " and " + View.Show(b.Shape) + " do not fit together");
            var shape = a.Shape.Take(a.Rank - 1).Concat(b.Shape.Skip(1)).ToArray();
            Need(output.Shape.SequenceEqual(shape), Status.Shape, "matmul: a result of shape " + View.Show(output.Shape));
            int rows = a.Rank == 2 ? (int)a.Shape[0] : 1, inner = (int)b.Shape[0], columns = b.Rank == 2 ? (int)b.Shape[1] : 1;
            Buffer left = Buffer.Of(a), right = Buffer.Of(b), result = new Buffer(left.Kind, rows * columns);
            bool isTruth = a.Type == ElementType.Bool;
            for (int i = 0; i < rows; i++)
            {
                for (int k = 0; k < inner; k++)
                {
                    int from = k * columns, to = i * columns, at = i * inner + k;
                    if (left.Kind == Kind.Whole)
                    {
                        long factor = left.Wholes[at];
                        for (int j = 0; j < columns; j++)
                        {
                            long product = unchecked(factor * right.Wholes[from + j]);
                            result.Wholes[to + j] = isTruth ? result.Wholes[to + j] | product : unchecked(result.Wholes[to + j] + product);
                        }
                    }
                    else if (left.Kind == Kind.Real)
                    {
                        double factor = left.Reals[at];
                        for (int j = 0; j < columns; j++) result.Reals[to + j] += factor * right.Reals[from + j];
                    }
                    else
                    {
                        Complex factor = left.Pairs[at];
                        for (int j = 0; j < columns; j++) result.Pairs[to + j] += factor * right.Pairs[from + j];
                    }
                }
            }
            result.To(output);
        }

        private static Complex[] AllPairs(View view)
        {
            Buffer found = Buffer.Of(view);
            return found.Kind == Kind.Complex ? found.Pairs : found.Reals.Select(value => new Complex(value, 0)).ToArray();
        }

        /// <summary>Gauss's elimination with the largest pivot of each column.</summary>
        internal static void Solve(View output, View a, View b)
        {
            Need(Types.KindOf(a.Type) != Kind.Whole && a.Type == b.Type && a.Type == output.Type, Status.Type, "solve: operands of other types");
            Need(a.Rank == 2 && a.Shape[0] == a.Shape[1] && (b.Rank == 1 || b.Rank == 2) && b.Shape[0] == a.Shape[0] && output.Shape.SequenceEqual(b.Shape),
                Status.Shape, "solve: a matrix of shape " + View.Show(a.Shape) + " and a right side of shape " + View.Show(b.Shape));
            int n = (int)a.Shape[0], sides = b.Rank == 2 ? (int)b.Shape[1] : 1;
            Complex[] matrix = AllPairs(a), side = AllPairs(b);
            for (int column = 0; column < n; column++)
            {
                int pivot = Enumerable.Range(column, n - column).OrderByDescending(row => matrix[row * n + column].Magnitude).First();
                Need(matrix[pivot * n + column] != Complex.Zero, Status.Execution, "solve: the matrix is singular");
                Swap(matrix, n, pivot, column);
                Swap(side, sides, pivot, column);
                for (int row = column + 1; row < n; row++)
                {
                    Complex factor = matrix[row * n + column] / matrix[column * n + column];
                    if (factor == Complex.Zero) continue;
                    for (int k = column; k < n; k++) matrix[row * n + k] -= factor * matrix[column * n + k];
                    for (int k = 0; k < sides; k++) side[row * sides + k] -= factor * side[column * sides + k];
                }
            }
            for (int row = n - 1; row >= 0; row--)
            {
                for (int k = 0; k < sides; k++)
                {
                    Complex rest = side[row * sides + k];
                    for (int column = row + 1; column < n; column++) rest -= matrix[row * n + column] * side[column * sides + k];
                    side[row * sides + k] = rest / matrix[row * n + row];
                }
            }
            var result = new Buffer(Types.KindOf(output.Type), side.Length);
            for (int i = 0; i < side.Length; i++)
            {
                if (result.Kind == Kind.Complex) result.Pairs[i] = side[i];
                else result.Reals[i] = side[i].Real;
            }
            result.To(output);
        }

        private static void Swap(Complex[] matrix, int columns, int first, int second)
        {
            for (int k = 0; first != second && k < columns; k++)
            {
                Complex kept = matrix[first * columns + k];
                matrix[first * columns + k] = matrix[second * columns + k];
                matrix[second * columns + k] = kept;
            }
        }

        /// <summary>Does something to each line along the last axis.</summary>
        private static void Lines(View output, View a, string what, Action<Buffer, int> act)
        {
            Need(a.Type == output.Type, Status.Type, what + ": operands of different types");
            Need(a.Rank > 0 && a.Shape.SequenceEqual(output.Shape), Status.Shape, what + ": a result of another shape, or no dimension");
            Buffer whole = Buffer.Of(a);
            int length = (int)a.Shape[a.Rank - 1];
            for (int at = 0; length > 0 && at < a.Length; at += length) act(whole, at);
            whole.To(output);
        }

        /// <summary>In rising order; what is not a number comes last.</summary>
        internal static void Sort(View output, View a) => Lines(output, a, "sort", (whole, at) =>
        {
            int length = (int)a.Shape[a.Rank - 1];
            if (whole.Kind == Kind.Whole)
            {
                long turn = a.Type == ElementType.U64 ? long.MinValue : 0;
                for (int i = at; i < at + length; i++) whole.Wholes[i] ^= turn;
                Array.Sort(whole.Wholes, at, length);
                for (int i = at; i < at + length; i++) whole.Wholes[i] ^= turn;
                return;
            }
            Func<Complex, double> real = z => double.IsNaN(z.Real) ? double.PositiveInfinity : z.Real;
            Func<Complex, bool> isOdd = z => double.IsNaN(z.Real) || double.IsNaN(z.Imaginary);
            if (whole.Kind == Kind.Complex)
            {
                var sorted = whole.Pairs.Skip(at).Take(length).OrderBy(isOdd).ThenBy(real).ThenBy(z => z.Imaginary).ToArray();
                sorted.CopyTo(whole.Pairs, at);
                return;
            }
            // .NET sorts what is not a number before all others.
            Array.Sort(whole.Reals, at, length);
            int odd = 0;
            while (odd < length && double.IsNaN(whole.Reals[at + odd])) odd++;
            if (odd == 0) return;
            Array.Copy(whole.Reals, at + odd, whole.Reals, at, length - odd);
            for (int i = at + length - odd; i < at + length; i++) whole.Reals[i] = double.NaN;
        });

        /// <summary>The discrete Fourier transform, or its inverse.</summary>
        internal static void Transform(View output, View a, bool isInverse)
        {
            Need(Types.KindOf(a.Type) == Kind.Complex, Status.Type, "fft: the elements are not complex");
            Lines(output, a, "fft", (whole, at) =>
            {
                int length = (int)a.Shape[a.Rank - 1];
                var line = new Complex[length];
                for (int i = 0; i < length; i++) line[i] = isInverse ? Complex.Conjugate(whole.Pairs[at + i]) : whole.Pairs[at + i];
                line = Fourier(line);
                for (int i = 0; i < length; i++) whole.Pairs[at + i] = isInverse ? Complex.Conjugate(line[i]) / length : line[i];
            });
        }

        /// <summary>By halves as far as the length is even, and then term by term; long odd lengths by Bluestein's convolution.</summary>
        private static Complex[] Fourier(Complex[] x)
        {
            int n = x.Length;
            if (n <= 1) return x;
            if (n % 2 != 0) return n < 64 ? ByTerms(x) : Bluestein(x);
            Complex[] even = Fourier(x.Where((value, at) => at % 2 == 0).ToArray()), odd = Fourier(x.Where((value, at) => at % 2 == 1).ToArray());
            var result = new Complex[n];
            for (int k = 0; k < n / 2; k++)
            {
                Complex turned = Root(k, n) * odd[k];
                result[k] = even[k] + turned;
                result[k + n / 2] = even[k] - turned;
            }
            return result;
        }

        /// <summary>exp(-2πi·k/n).</summary>
        private static Complex Root(long k, long n)
        {
            double angle = -2 * Math.PI * k / n;
            return 4 * k % n == 0 ? Quarter(4 * k / n) : new Complex(Math.Cos(angle), Math.Sin(angle));
        }

        private static Complex Quarter(long quarters)
        {
            var turns = new[] { Complex.One, -Complex.ImaginaryOne, -Complex.One, Complex.ImaginaryOne };
            return turns[quarters % 4];
        }

        private static Complex[] ByTerms(Complex[] x)
        {
            int n = x.Length;
            var result = new Complex[n];
            for (int k = 0; k < n; k++)
            {
                for (int j = 0; j < n; j++) result[k] += x[j] * Root((long)k * j % n, n);
            }
            return result;
        }

        private static Complex[] Bluestein(Complex[] x)
        {
            int n = x.Length, size = 1;
            while (size < 2 * n) size *= 2;
            var chirp = Enumerable.Range(0, n).Select(k => Root((long)k * k % (2L * n), 2L * n)).ToArray();
            Complex[] left = new Complex[size], right = new Complex[size];
            for (int k = 0; k < n; k++)
            {
                left[k] = x[k] * chirp[k];
                right[k] = right[(size - k) % size] = Complex.Conjugate(chirp[k]);
            }
            Complex[] a = Fourier(left), b = Fourier(right);
            for (int k = 0; k < size; k++) a[k] = Complex.Conjugate(a[k] * b[k]);
            a = Fourier(a);
            return chirp.Select((turn, k) => turn * Complex.Conjugate(a[k]) / size).ToArray();
        }

        /// <summary>The elements of a source, in C order, at indices.</summary>
        internal static void Gather(View output, View source, View index)
        {
            Need(Types.IsInteger(index.Type), Status.Type, "gather: subscripts of type " + Types.Name(index.Type));
            Buffer all = Buffer.Of(source), at = Buffer.Of(index.StretchedTo(output.Shape)), result = new Buffer(all.Kind, at.Wholes.Length);
            for (int i = 0; i < at.Wholes.Length; i++)
            {
                long place = at.Wholes[i] < 0 ? at.Wholes[i] + source.Length : at.Wholes[i];
                Need(place >= 0 && place < source.Length, Status.Bounds, "gather: index " + at.Wholes[i] + " of " + source.Length + " elements");
                if (all.Kind == Kind.Whole) result.Wholes[i] = all.Wholes[place];
                else if (all.Kind == Kind.Real) result.Reals[i] = all.Reals[place];
                else result.Pairs[i] = all.Pairs[place];
            }
            result.To(output);
        }

        /// <summary>An array in C order of numbers of their places.</summary>
        internal static void Fill(View output, Func<long, double> real, Func<long, long> whole)
        {
            long place = 0;
            var buffer = new Buffer(Types.KindOf(output.Type));
            Walk.Runs(output.Shape, new[] { output }, (starts, strides, count) =>
            {
                for (int i = 0; i < count; i++, place++)
                {
                    if (buffer.Kind == Kind.Whole) buffer.Wholes[i] = whole(place);
                    else buffer.Reals[i] = real(place);
                }
                buffer.Store(output, starts[0], strides[0], count);
            });
        }

        /// <summary>Philox2x32-10 of places, as bh's own: bits, or numbers in [0, 1).</summary>
        internal static void Random(View output, ulong key, long first)
        {
            bool isSingle = output.Type == ElementType.F32;
            bool isPossible = Types.KindOf(output.Type) == Kind.Real || output.Type == ElementType.U32 || output.Type == ElementType.U64;
            Need(isPossible, Status.Type, "random numbers of type " + Types.Name(output.Type));
            Fill(output,
                place => isSingle ? (Bits(first + place, key) & 0xFFFFFFFF) >> 8 : 0 + (Bits(first + place, key) >> 11),
                place => unchecked((long)Bits(first + place, key)));
            if (Types.KindOf(output.Type) == Kind.Whole) return;
            View unit = View.New(output.Type);
            new Buffer(Kind.Real, 1) { Reals = { [0] = isSingle ? 1.0 / (1 << 24) : 1.0 / (1L << 53) } }.To(unit);
            Operations.Run(Opcode.Multiply, 0, output, new[] { output, unit });
            unit.Block.Release();
        }

        private static ulong Bits(long index, ulong key)
        {
            unchecked
            {
                uint left = (uint)index, right = (uint)((ulong)index >> 32), turn = (uint)key;
                for (int round = 0; round < 10; round++)
                {
                    ulong product = (ulong)left * 0xD256D193;
                    left = (uint)(product >> 32) ^ turn ^ right;
                    right = (uint)product;
                    turn += 0x9E3779B9;
                }
                return (ulong)right << 32 | left;
            }
        }
    }
}
