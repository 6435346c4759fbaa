// Every operation of arrays on every element type, printed, so that engines can be compared.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Numerics;
using System.Reflection;
using Bh;
using R = Bh.Range;

static class Figures
{
    private static readonly double[] Numbers = { 0, 1, 2, 3, -1, -3, 7, 100, 0.5, -0.25, 1.5, 2.5, 1e-3, 12.75, -6.5, 0.875 };

    internal static void Print()
    {
        Of(Numbers.Select(x => x != 0).ToArray());
        Of(Numbers.Select(x => (sbyte)x).ToArray());
        Of(Numbers.Select(x => (short)(x * 300)).ToArray());
        Of(Numbers.Select(x => (int)(x * 1000)).ToArray());
        Of(Numbers.Select(x => (long)(x * 1e9)).ToArray());
        Of(Numbers.Select(x => unchecked((byte)(long)x)).ToArray());
        Of(Numbers.Select(x => unchecked((ushort)(long)x)).ToArray());
        Of(Numbers.Select(x => unchecked((uint)(long)x)).ToArray());
        Of(Numbers.Select(x => unchecked((ulong)(long)x)).ToArray());
        Of(Numbers.Concat(new[] { double.NaN, double.PositiveInfinity, double.NegativeInfinity, -0.0 }).Select(x => (float)x).ToArray());
        Of(Numbers.Concat(new[] { double.NaN, double.PositiveInfinity, double.NegativeInfinity, -0.0 }).ToArray());
        Of(Numbers.Select((x, at) => new Complex(x / 8, 0.3 + at / 16.0)).ToArray());
        Show("uniform f64", Create.Uniform<double>(9, 7));
        Show("uniform f32", Create.Uniform<float>(9, 7));
        Show("bits u32", Create.Uniform<uint>(9, 7));
        Show("bits u64", Create.Uniform<ulong>(9, 1234567));
        Show("normal f64", Create.Normal<double>(9, 3));
        Show("normal f32", Create.Normal<float>(9, 3));
        Show("linspace", Create.Linspace<double>(-1, 2, 7));
        Show("arange", Create.Arange<float>(0, 1, 0.125));
        var signal = new NdArray<Complex>(Enumerable.Range(0, 90).Select(k => new Complex(k % 7, k % 5)).ToArray());
        foreach (int length in new[] { 1, 8, 12, 67, 90 }) Show("fft " + length, Functions.Fft(signal[R.Slice(0, length)].Clone()));
        var matrix = new NdArray<double>(Numbers).Reshape(new Shape(4, 4)) + new NdArray<double>(new[] { 9.0, 8, 7, 6 });
        Show("solve", Functions.Solve(matrix, Create.Arange<double>(0, 4)));
        Console.WriteLine(matrix.ToString());
    }

    private static void Of<T>(T[] values)
    {
        var a = new NdArray<T>(values);
        NdArray<T> b = a.Reverse(0).Clone(), matrix = a[R.Slice(0, 12)].Reshape(new Shape(3, 4));
        const BindingFlags Own = BindingFlags.Public | BindingFlags.Instance | BindingFlags.DeclaredOnly;
        foreach (MethodInfo method in typeof(NdArray<T>).GetMethods(Own).OrderBy(method => method.Name))
        {
            var parameters = method.GetParameters();
            string[] skipped = { "Set", "Assign", "Dispose", "Clone" };
            if (skipped.Contains(method.Name) || method.IsGenericMethod || !method.ReturnType.Name.StartsWith("NdArray")) continue;
            bool isUnary = parameters.Length == 3 && parameters[0].Name == "output";
            bool isBinary = parameters.Length == 4 && parameters[0].ParameterType == typeof(NdArray<T>) && parameters[1].Name == "output";
            if (isUnary) Try<T>(method, a, null, "here", 1);
            if (isBinary) Try<T>(method, a, b, null, "here", 1);
        }
        foreach (int axis in new[] { 0, 1, Axis.All })
        {
            Attempt(typeof(T).Name + " Sum " + axis, () => matrix.Sum(axis));
            Attempt(typeof(T).Name + " Product " + axis, () => matrix.Product(axis));
            Attempt(typeof(T).Name + " Min " + axis, () => matrix.Min(axis));
            Attempt(typeof(T).Name + " Max " + axis, () => matrix.Max(axis));
        }
        Attempt(typeof(T).Name + " CumulativeSum", () => matrix.CumulativeSum(0));
        Attempt(typeof(T).Name + " CumulativeProduct", () => matrix.Transposed.CumulativeProduct(0));
        Attempt(typeof(T).Name + " MatMul", () => Functions.MatMul(matrix, matrix.Transposed));
        Attempt(typeof(T).Name + " Sort", () => Functions.Sort(b));
        Attempt(typeof(T).Name + " to double", () => a.Cast<double>());
        Attempt(typeof(T).Name + " to sbyte", () => a.Cast<sbyte>());
        Attempt(typeof(T).Name + " to ulong", () => a.Cast<ulong>());
        Attempt(typeof(T).Name + " to bool", () => a.Cast<bool>());
        Attempt(typeof(T).Name + " to Complex", () => a.Cast<Complex>());
        for (int power = 2; power <= 5; power++) Attempt(typeof(T).Name + " Pow " + power, () => a.Pow(power));
    }

    private static void Try<T>(MethodInfo method, NdArray<T> a, params object[] arguments)
    {
        string name = typeof(T).Name + " " + method.Name;
        try
        {
            object found = method.Invoke(a, arguments);
            if (found is NdArray<bool> truth) Show(name, truth);
            else if (found is NdArray<T> same) Show(name, same);
            else Show(name, (NdArray<double>)found);
        }
        catch (TargetInvocationException error) when (error.InnerException is BhException)
        {
            Console.WriteLine(name + ": " + ((BhException)error.InnerException).Status);
        }
    }

    private static void Attempt<T>(string name, Func<NdArray<T>> make)
    {
        try
        {
            Show(name, make());
        }
        catch (BhException error)
        {
            Console.WriteLine(name + ": " + error.Status);
        }
    }

    private static void Show<T>(string name, NdArray<T> array)
    {
        Console.WriteLine(name + ": " + string.Join(" ", array.ToArray().SelectMany(value => Text(value))));
    }

    private static IEnumerable<string> Text<T>(T value)
    {
        if (value is Complex)
        {
            var pair = (Complex)(object)value;
            return new[] { pair.Real.ToString("R", CultureInfo.InvariantCulture), pair.Imaginary.ToString("R", CultureInfo.InvariantCulture) };
        }
        if (value is double) return new[] { ((double)(object)value).ToString("R", CultureInfo.InvariantCulture) };
        if (value is float) return new[] { ((float)(object)value).ToString("R", CultureInfo.InvariantCulture) };
        return new[] { Convert.ToString(value, CultureInfo.InvariantCulture) };
    }
}
