// Operators, functions, reductions and views against values worked out by hand or by .NET.
using System;
using System.Linq;
using System.Numerics;
using Bh;
using R = Bh.Range;

static class Values
{
    internal static void All()
    {
        var a = new NdArray<double>(new[] { 1.0, 2.0, 3.0, 4.0 });
        var b = new NdArray<double>(new[] { 4.0, 3.0, 2.0, 1.0 });
        Program.Equal(a + b, 5, 5, 5, 5);
        Program.Equal(a - b, -3, -1, 1, 3);
        Program.Equal(a * 2, 2, 4, 6, 8);
        Program.Equal(12 / a, 12, 6, 4, 3);
        Program.Equal(a % 3, 1, 2, 0, 1);
        Program.Equal(1 - a, 0, -1, -2, -3);
        Program.Equal(-a, -1, -2, -3, -4);
        Program.Check(BitConverter.DoubleToInt64Bits((-new NdArray<double>(new[] { 0.0 })).ToArray()[0]) == long.MinValue, "-0.0");
        Program.Equal(a < b, true, true, false, false);
        Program.Equal(a >= b, false, false, true, true);
        Program.Equal(a.Equal(3), false, false, true, false);
        Program.Equal((NdArray<double>)(a > 2), 0, 0, 1, 1);
        Program.Equal(a.Maximum(b), 4, 3, 3, 4);
        Program.Equal(a.Pow(2), 1, 4, 9, 16);
        Program.Equal(a.Pow(0.0), 1, 1, 1, 1);
        Program.Equal((NdArray<double>)2.0 + 3.0, 5);
        Program.Equal(Functions.Where(a < b, a, 0.0), 1, 2, 0, 0);
        Program.Check(a.Sqrt().ToArray().SequenceEqual(new[] { 1, Math.Sqrt(2), Math.Sqrt(3), 2 }), "Sqrt");
        Program.Check(a.Sum() == 10 && a.Product() == 24 && a.Min() == 1 && a.Max() == 4, "reductions to a number");
        Program.Check((a > 0).All() && (a > 3).Any() && !(a > 3).All() && !(a > 4).Any() && a.All(), "All and Any");
        Program.Equal(a.CumulativeSum(), 1, 3, 6, 10);
        Program.Equal(!(a > 2), true, true, false, false);
        Program.Equal(a.IsNaN(), false, false, false, false);
        Program.Equal((NdArray<double>)5.0, 5);

        // Into an array that is there, which is also the result.
        var output = Create.Zeros<double>(4);
        Program.Check(ReferenceEquals(a.Add(b, output), output), "the result is the output");
        Program.Equal(output, 5, 5, 5, 5);
        a.Exp(output: output);
        Program.Check(Math.Abs(output.ToArray()[0] - Math.E) < 1e-15, "Exp into an output");
        output[R.Slice(1, 3)] += 1;
        output.Multiply(0, output: output);
        Program.Equal(output, 0, 0, 0, 0);

        // Broadcasting and axes.
        var m = Create.Arange<double>(0, 6).Reshape(new Shape(2, 3));
        Program.Equal(m + new NdArray<double>(new[] { 10.0, 20, 30 }), 10, 21, 32, 13, 24, 35);
        Program.Equal(m.Sum(0), 3, 5, 7);
        Program.Equal(m.Sum(-1), 3, 12);
        Program.Equal(m.Sum(Axis.All), 15);
        Program.Equal(m.Max(1), 2, 5);
        Program.Equal(m.CumulativeSum(1), 0, 1, 3, 3, 7, 12);
        Program.Equal(Functions.MatMul(m, m.Transposed), 5, 14, 14, 50);
        Program.Equal(Functions.Solve(new NdArray<double>(new[,] { { 2.0, 0 }, { 0, 4 } }), new NdArray<double>(new[] { 2.0, 8 })), 1, 2);
        Program.Equal(Functions.Sort(b), 1, 2, 3, 4);
        Program.Equal(Functions.Gather(a, new NdArray<long>(new long[] { 3, -4 })), 4, 1);
    }
}

static class Views
{
    internal static void All()
    {
        var a = Create.Arange<double>(0, 10);
        Program.Equal(a[R.Slice(1, -1)], 1, 2, 3, 4, 5, 6, 7, 8);
        Program.Equal(a[R.Slice(7, 0)], 7, 8, 9);
        Program.Equal(a[R.Slice(1, 8, 3)], 1, 4, 7);
        Program.Equal(a[R.Slice(-2)], 8, 9);
        Program.Equal(a[R.Slice(2, R.End, -1)], 2, 1, 0);
        Program.Equal(a[new R(2, 3)], 2, 3, 4);
        Program.Equal(a[new R(2, 0, 4)], 2, 6);
        Program.Equal(a[new R(2, -6)], 2, 3);
        Program.Equal(a[new R(-3, 3)], 7, 8, 9);
        Program.Equal(a[new R(2, 3, -1)], 2, 1, 0);
        Program.Equal(a[3], 3);
        Program.Check(a[3].Rank == 0 && a[R.NewAxis].Rank == 2, "ranks of parts");
        var m = a.Reshape(new Shape(2, 5));
        Program.Equal(m[1, R.Slice(0, 2)], 5, 6);
        Program.Equal(m[R.Rest, -1], 4, 9);
        Program.Equal(m.Transposed[0], 0, 5);
        Program.Equal(m.Subview(R.El(1), 1), 1, 6);
        Program.Equal(m.Diagonal(), 0, 6);
        Program.Equal(m.Reverse(0)[0], 5, 6, 7, 8, 9);
        Program.Equal(a[0].BroadcastTo(2), 0, 0);
        Program.Check(m.NewAxis(1).Shape.Equals(new Shape(2, 1, 5)) && m.Flatten().Rank == 1, "shapes of views");
        // Views write through.
        m[0, R.All] = 1;
        m[1][R.Slice(0, 2)] = m[1, R.Slice(3)];
        Program.Equal(a, 1, 1, 1, 1, 1, 8, 9, 7, 8, 9);
        m[R.All, 0] *= 2;
        Program.Equal(m[R.All, 0], 2, 16);
        a.Value[0] = 5;
        Program.Check(a.Value[0] == 5 && m.Value[1, 4] == 9, "single elements");
        a[R.Slice(1)] = a[R.Slice(0, -1)];
        Program.Equal(a[R.Slice(0, 3)], 5, 5, 1);
        var b = a;
        b += 1;
        Program.Equal(a[0], 5);
        a.Set(3);
        Program.Check(a.Sum() == 30, "Set");
        Program.Check(a.ToString().Contains("3"), "ToString: " + a);
    }
}

static class Types
{
    internal static void All()
    {
        Round(new[] { true, false, true });
        Round(new sbyte[] { -128, 0, 127 });
        Round(new short[] { -32768, 0, 32767 });
        Round(new[] { int.MinValue, 0, int.MaxValue });
        Round(new[] { long.MinValue, 0, long.MaxValue });
        Round(new byte[] { 0, 1, 255 });
        Round(new ushort[] { 0, 1, 65535 });
        Round(new[] { 0u, 1u, uint.MaxValue });
        Round(new[] { 0ul, 1ul, ulong.MaxValue });
        Round(new[] { -1.5f, 0f, float.MaxValue });
        Round(new[] { -1.5, 0.0, double.MaxValue });
        Round(new[] { new Complex(1, -2), Complex.Zero, Complex.ImaginaryOne });
        var i = new NdArray<int>(new[] { 5, -6, 7 });
        Program.Equal(i / 2, 2, -3, 3);
        Program.Equal(-i, -5, 6, -7);
        Program.Equal(i & 3, 1, 2, 3);
        Program.Equal(~i, -6, 5, -8);
        Program.Equal(i.LeftShift(1), 10, -12, 14);
        Program.Equal(i.Cast<double>() / 2, 2.5, -3, 3.5);
        Program.Equal(i.Cast<byte>(), new byte[] { 5, 250, 7 });
        var t = new NdArray<bool>(new[] { true, false });
        Program.Equal(t & new NdArray<bool>(new[] { true, true }), true, false);
        Program.Equal(!t, false, true);
        Program.Equal(~t, false, true);
        var c = new NdArray<Complex>(new[] { new Complex(3, 4), new Complex(0, -1) });
        Program.Equal(c.Magnitude(), 5, 1);
        Program.Equal(c.Imaginary(), 4, -1);
        Program.Equal(c * c, new Complex(-7, 24), new Complex(-1, 0));
        Program.Check((Functions.InverseFft(Functions.Fft(c)) - c).Magnitude().Max() < 1e-15, "Fft and back");
        Program.Equal(new NdArray<ulong>(new Shape(2)), 0ul, 0ul);
        Program.Equal(new NdArray<int>(new[,] { { 1, 2 }, { 3, 4 } }).Transposed, 1, 3, 2, 4);
        Program.Equal(Create.Full(2.5f, 3), 2.5f, 2.5f, 2.5f);
        Program.Equal(Create.Linspace<double>(0, 1, 3), 0, 0.5, 1);
        Program.Check(Create.Uniform<double>(100, 7).Sum() == Create.Uniform<double>(100, 7).Sum(), "random numbers by key");
    }

    private static void Round<T>(T[] values)
    {
        var array = new NdArray<T>(values);
        Program.Equal(array, values);
        Program.Check(array[2].Take().Equals(values[2]), "the element of " + typeof(T));
        array[0] = values[2];
        Program.Check(array.Value[0].Equals(values[2]), "assigning a number of " + typeof(T));
        array.Write(values);
        Program.Equal(array[R.Slice(0, 1)], values[0]);
    }
}

static class Memories
{
    internal static unsafe void All()
    {
        var a = Create.Arange<double>(0, 6).Reshape(new Shape(2, 3)).Clone();
        using (var memory = a.Map(Access.Read | Access.Write))
        {
            Span<double> span = memory.Span;
            span[0] = 42;
            ((double*)memory.Address)[5] = -1;
            Program.Check(span.Length == 6 && memory.IsContiguous, "a span");
        }
        Program.Equal(a, 42, 1, 2, 3, 4, -1);
        using (var memory = a[R.All, 1].Map())
        {
            Program.Check(!memory.IsContiguous && memory.Strides[0] == 3, "a strided mapping");
            Program.Check(((double*)memory.Address)[3] == 4, "through a strided mapping");
        }
        string path = System.IO.Path.GetTempFileName();
        a.Save(path);
        Program.Equal(Create.Load<double>(path), a.ToArray());
        System.IO.File.Delete(path);
    }
}
