// Programs in NumCIL's names, without bh's: what is in its namespaces, and that results are arrays as there.
using System.Linq;
using NumCIL;
using NumCIL.Double;
using R = NumCIL.Range;

static class NumCilPrograms
{
    internal static void All()
    {
        NumCIL.Bohrium.Utility.Activate();
        Operations();
        Parts();
        Reductions();
        Truths();
        Singles();
    }

    private static void Same(double[] found, params double[] expected) =>
        Program.Check(found.SequenceEqual(expected), "NumCIL: [" + string.Join(", ", found) + "]\n" + System.Environment.StackTrace);

    private static void Operations()
    {
        var a = new NdArray(new[] { 1.0, 2, 3, 4 });
        var b = new NdArray(new[] { 4.0, 3, 2, 1 });
        Same((2 * a - b / 4 + 1f).AsArray(), 2, 4.25, 6.5, 8.75);
        Same((-a % 3).AsArray(), -1, -2, 0, -1);
        Same(Max.Apply(a, 2).AsArray(), 2, 2, 3, 4);
        Same(Sqrt.Apply(a.Pow(2)).AsArray(), 1, 2, 3, 4);
        Same(a.Min(b).Sign().AsArray(), 1, 1, 1, 1);
        // Outputs are arrays of the program, which get the result.
        var c = new NdArray(a.Shape) { Name = "c" };
        var same = Sub.Apply(a, b, c);
        Same(c.AsArray(), -3, -1, 1, 3);
        Abs.Apply(c, c);
        a.Mul(c, c);
        Same(same.AsArray(), 3, 2, 3, 12);
        Program.Check(same.Name == "c", "the name of an output");
        Program.Check(Generate.Random(3, 3).AsArray().All(one => one >= 0 && one < 1), "Random");
        Same(Generate.Same(2.5, new long[] { 2 }).AsArray(), 2.5, 2.5);
    }

    private static void Parts()
    {
        var grid = Generate.Range(3, 4);
        Program.Check(grid.Shape.Dimensions[1].Length == 4 && grid.Shape.Dimensions[0].Stride == 4 && grid.Shape.Elements == 12, "Shape");
        Same(grid[R.Slice(1, 0), R.El(-1)].AsArray(), 7, 11);
        Same(grid[R.All, R.Slice(0, -2)][0].AsArray(), 0, 1);
        grid[0] += 40f;
        grid[R.All, R.El(1)] = 0;
        Same(grid.AsArray(), 40, 0, 42, 43, 4, 0, 6, 7, 8, 0, 10, 11);
        Program.Check(grid.Value[2, 3] == 11 && grid.Value[1] == 4 && grid.Value[0] == 40, "Value");
        grid.Value[1, 1] = 5;
        Same(grid.Transposed[1].AsArray(), 0, 5, 0);
        // A shape with strides names a view: here the diagonal.
        var square = Generate.Ones(3, 3);
        square.Reshape(new Shape(new long[] { 3 }, 0, new long[] { 4 })).Set(7);
        Same(square.AsArray(), 7, 1, 1, 1, 7, 1, 1, 1, 7);
        square.Reshape(new Shape(new long[] { 2, 2 }, 1, new long[] { 2, 1 })).Set(0);
        Same(square.AsArray(), 7, 0, 0, 0, 0, 1, 1, 1, 7);
        var line = Generate.Arange(2);
        Same((line - line[R.NewAxis, R.All].Transposed).AsArray(), 0, 1, -1, 0);
        var copy = line.Clone();
        copy.Set(9);
        Same(line.AsArray(), 0, 1);
    }

    private static void Reductions()
    {
        var grid = Generate.Range(2, 3);
        Same(Add.Reduce(grid).AsArray(), 3, 5, 7);
        Same(Add.Reduce(grid, 1).AsArray(), 3, 12);
        Same(Max.Reduce(grid, -1).AsArray(), 2, 5);
        // The fold of a line is an array of one element.
        var all = Add.Reduce(Add.Reduce(grid));
        Program.Check(all.Shape.Dimensions.Length == 1 && all.Value[0] == 15 && grid.Sum() == 15, "a fold of a line");
        var lines = Generate.Empty(3);
        grid.Reduce<Mul>(0, lines);
        Same(lines.AsArray(), 0, 4, 10);
        var one = Generate.Empty(1);
        Program.Check(Min.Reduce(lines, 0, one).Value[0] == 0 && Add.Reduce(lines, 0, one).Value[0] == 14 && one.Value[0] == 14, "an output of one element");
    }

    private static void Truths()
    {
        var a = new NdArray(new[] { -1.0, 0, 2 });
        var mask = new NumCIL.Boolean.NdArray(a.Shape);
        GreaterThanOrEqual.Apply(a, 0, mask);
        Same(mask.ToDouble().AsArray(), 0, 1, 1);
        NumCIL.Boolean.Not.Apply(mask, mask);
        var numbers = Generate.Zeroes(3);
        mask.ToDouble(numbers);
        Same(numbers.AsArray(), 1, 0, 0);
        Same(((NdArray)(a < 1 & !(a < 0))).AsArray(), 0, 1, 0);
        Same((NumCIL.Boolean.Xor.Apply(a > 0, a >= 0) | NotEqual.Apply(a, a)).ToDouble().AsArray(), 0, 1, 0);
    }

    private static void Singles()
    {
        var a = NumCIL.Float.Generate.Ones(2, 2) * 0.5f + 1;
        NumCIL.Float.Sqrt.Apply(a, a);
        Program.Check(a.AsArray().All(one => one == (float)System.Math.Sqrt(1.5f)), "single precision");
        Program.Check(NumCIL.Float.Add.Reduce(a.Flatten()).Value[0] == 4 * a.Value[0], "a sum in single precision");
        Program.Check(LessThan.Apply(1, 2).ToFloat().Value[0] == 1, "ToFloat");
    }
}
