// The examples' output: results to the last bit, so that programs in several languages can be compared.
using System;
using System.Diagnostics;
using Bh;

static class Fingerprint
{
    /// <summary>A number, and its bits.</summary>
    public static void Print(string name, double value)
    {
        Console.WriteLine("{0} {1:x16}", name, BitConverter.DoubleToInt64Bits(value));
    }

    /// <summary>A hash (FNV-1a) of the elements' bits.</summary>
    public static void Print(string name, NdArray<double> values)
    {
        ulong hash = 0xcbf29ce484222325;
        foreach (double value in values.ToArray())
        {
            hash = unchecked((hash ^ (ulong)BitConverter.DoubleToInt64Bits(value)) * 0x100000001b3);
        }
        Console.WriteLine("{0} {1:x16}", name, hash);
    }

    /// <summary>The time of the main part, to the error output.</summary>
    public static void Seconds(Stopwatch clock) =>
        Console.Error.WriteLine("seconds {0:F4}", clock.Elapsed.TotalSeconds);

    /// <summary>The input data that the benchmark programs have in common.</summary>
    public static NdArray<double> Pseudo(long count, long seed)
    {
        const long prime = 100019;
        var values = new double[count];
        for (long i = 0; i < count; i++)
        {
            long root = (i + seed * 33391) % prime;
            values[i] = (double)(root * root % prime * root % prime) / prime;
        }
        return new NdArray<double>(values);
    }
}
