// The tests: each a method with assertions; the program names what fails and ends with the number of failures.
using System;
using System.Linq;
using Bh;

static class Program
{
    private static int failures, checks;

    internal static void Check(bool isTrue, string what)
    {
        checks++;
        if (isTrue) return;
        failures++;
        Console.WriteLine("FAILED: " + what);
    }

    internal static void Equal<T>(NdArray<T> array, params T[] expected)
    {
        T[] found = array.ToArray();
        Check(found.SequenceEqual(expected),
            "expected [" + string.Join(", ", expected) + "], found [" + string.Join(", ", found) + "]\n" + Environment.StackTrace);
    }

    private static void Run(string name, Action test)
    {
        try
        {
            test();
        }
        catch (Exception exception)
        {
            Check(false, name + ": " + exception);
        }
    }

    private static int Main(string[] arguments)
    {
        if (arguments.Contains("figures"))
        {
            Figures.Print();
            return 0;
        }
        Run("values", Values.All);
        Run("views", Views.All);
        Run("NumCIL", NumCilPrograms.All);
        Run("types", Types.All);
        Run("memory", Memories.All);
        Run("wrong programs", WrongPrograms.All);
        Run("life", Life.All);
        Console.WriteLine("{0} checks, {1} failures", checks, failures);
        return failures == 0 ? 0 : 1;
    }
}
