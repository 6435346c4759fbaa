// Programs that are wrong: each gives an exception with the file and the line of its fault, and the next one works.
using System;
using System.Numerics;
using System.Runtime.CompilerServices;
using Bh;
using NumDouble = NumCIL.Double;
using R = Bh.Range;

static class WrongPrograms
{
    private static readonly NdArray<double> Four = Create.Ones<double>(4), Five = Create.Ones<double>(5);
    private static readonly NdArray<double> Matrix = Create.Ones<double>(new Shape(2, 3));
    private static readonly NdArray<int> Whole = Create.Ones<int>(4);
    private static readonly NdArray<bool> Truth = Create.Ones<bool>(4);
    private static readonly NdArray<Complex> Pairs = Create.Ones<Complex>(4);
    private static readonly NdArray<double> Nothing = null;
    private static int count;

    /// <summary>What is wrong must stand in the line of the call.</summary>
    private static void Wrong(Action program, [CallerLineNumber] int line = 0)
    {
        count++;
        try
        {
            program();
            // Errors in elements are raised when they are computed.
            Context.Default.Sync();
            Program.Check(false, "the program of line " + line + " is not refused");
        }
        catch (BhException error)
        {
            Program.Check(error.Line == line && error.File.EndsWith("WrongPrograms.cs"),
                "line " + line + " is given as " + error.File + ":" + error.Line + ": " + error.Text);
            Program.Check(error.Text.Length > 5 && error.Status != Status.Panic, "line " + line + ": " + error.Text);
        }
        Program.Check(Four.Sum() == 4, "after line " + line);
    }

    internal static void All()
    {
        Shapes();
        Subscripts();
        Disposed();
        OfTypes();
        Arguments();
        Program.Check(count >= 60, count + " wrong programs");
    }

    private static void Shapes()
    {
        Wrong(() => { var x = Four + Five; });
        Wrong(() => { var x = Matrix - Four; });
        Wrong(() => { var x = Four > Five; });
        Wrong(() => Four.Add(Five));
        Wrong(() => Four.Add(Four, Five));
        Wrong(() => Four.Sqrt(Five));
        Wrong(() => Matrix.Sum(0, Four));
        Wrong(() => Matrix.CumulativeSum(0, Four));
        Wrong(() => { Four[R.All] = Five; });
        Wrong(() => { Four[R.Slice(1)] += Five; });
        Wrong(() => { Matrix[0] = Four; });
        Wrong(() => Four.Set(Five));
        Wrong(() => Four.Reshape(new Shape(3, 2)));
        Wrong(() => Four.Reshape(new Shape(-1, -1)));
        Wrong(() => Matrix.BroadcastTo(6));
        Wrong(() => Functions.MatMul(Matrix, Matrix));
        Wrong(() => Functions.MatMul(Matrix, Create.Ones<double>(new Shape(3, 3, 3))));
        Wrong(() => Functions.Solve(Matrix, Four));
        Wrong(() => Functions.Where(Truth, Four, Five));
        Wrong(() => Create.Zeros<double>(-1));
        Wrong(() => Create.Ones<double>(new Shape(1L << 40, 1L << 40)));
        Wrong(() => Create.Zeros<double>(new Shape(new long[17])));
        Wrong(() => new NdArray<double>(new[] { 1.0, 2 }, new Shape(3)));
        Wrong(() => Four.Write(new double[3]));
        Wrong(() => Four.Value[0, 0].ToString());
        Wrong(() => Five.Take());
        Wrong(() => NumDouble.Add.Apply(Four, Five));
    }

    private static void Subscripts()
    {
        Wrong(() => { var x = Four[4]; });
        Wrong(() => { var x = Four[-5]; });
        Wrong(() => { Four[7] = 1; });
        Wrong(() => { var x = Four[R.All, R.All]; });
        Wrong(() => { var x = Four[R.Slice(0, 3, 0)]; });
        Wrong(() => { var x = Matrix[R.Rest, R.Rest]; });
        Wrong(() => { var x = Matrix[0, 3]; });
        Wrong(() => { Four.Value[4] = 1; });
        Wrong(() => Four.Subview(R.All, 1));
        Wrong(() => { var x = Four[(R[])null]; });
        Wrong(() => Matrix.Sum(2));
        Wrong(() => Matrix.Sum(-3));
        Wrong(() => Matrix.CumulativeSum(5));
        Wrong(() => Matrix.Transpose(new[] { 0, 0 }));
        Wrong(() => Matrix.Transpose(new[] { 0 }));
        Wrong(() => Matrix.Reverse(2));
        Wrong(() => Matrix.NewAxis(4));
        Wrong(() => Four.Diagonal());
        Wrong(() => Functions.Gather(Four, new NdArray<long>(new long[] { 9 })));
    }

    private static void Disposed()
    {
        var gone = Create.Ones<double>(4);
        gone.Dispose();
        Wrong(() => { var x = gone + 1; });
        Wrong(() => { var x = 1 - gone; });
        Wrong(() => { var x = -gone; });
        Wrong(() => { var x = gone[0]; });
        Wrong(() => { gone[0] = 1; });
        Wrong(() => { Four[R.All] = gone; });
        Wrong(() => gone.ToArray());
        Wrong(() => gone.Sum(0));
        Wrong(() => gone.Exp());
        Wrong(() => Four.Add(Four, gone));
        Wrong(() => gone.Map());
        Wrong(() => gone.Reshape(4));
        Wrong(() => gone.Write(new double[4]));
        Wrong(() => { var rank = gone.Rank; });
        var context = new Context();
        context.Dispose();
        Wrong(() => context.Sync());
        Wrong(() => { using (context.Use()) Create.Ones<double>(1); });
        var mapping = Create.Ones<double>(4).Map();
        mapping.Dispose();
        Wrong(() => { var x = mapping.Span; });
        NdArray<double> left;
        var block = new Temporaries();
        left = Create.Ones<double>(4) + 1;
        block.Dispose();
        Wrong(() => { var x = left * 2; });
        Wrong(() => block.Keep(Four));
    }

    private static void OfTypes()
    {
        Wrong(() => Create.Zeros<decimal>(3));
        Wrong(() => { var x = (NdArray<char>)'x' + 'y'; });
        Wrong(() => Whole.Sin());
        Wrong(() => { var x = Four & Four; });
        Wrong(() => { var x = ~Four; });
        Wrong(() => { var x = Pairs < Complex.One; });
        Wrong(() => Pairs.Abs());
        Wrong(() => Pairs.Max());
        Wrong(() => Four.Magnitude());
        Wrong(() => Pairs.Cast<double>());
        Wrong(() => { var x = -Truth; });
        Wrong(() => Create.Uniform<int>(3, 1));
        Wrong(() => Create.Linspace<int>(0, 1, 3));
        Wrong(() => Create.Load<double>("/nowhere/at/all.npy"));
        Wrong(() => Four.Save("/nowhere/at/all.npy"));
    }

    private static void Arguments()
    {
        Wrong(() => { var x = Four + Nothing; });
        Wrong(() => { var x = Nothing * 2; });
        Wrong(() => { Four[0] = Nothing; });
        Wrong(() => Four.Set(Nothing));
        Wrong(() => Functions.Sort(Nothing));
        Wrong(() => Create.Zeros<double>((Shape)null));
        Wrong(() => new NdArray<double>((double[])null));
        Wrong(() => new NdArray<double>((double[,])null));
        Wrong(() => Four.Pow(7));
        Wrong(() => Four.Add(1, 2.0));
        Wrong(() => Create.Arange<double>(0, 1, 0));
        Wrong(() => Create.Linspace<double>(0, 1, -1));
        Wrong(() => { new Context("no such stack"); });
        Wrong(() => Create.Ones<double>(3).BroadcastTo(new Shape(2, 3)).Set(1));
        Wrong(() => { Context.Default.Threads = -1; });
        Wrong(() => ((NdArray<double>)1.0).Write(new[] { 1.0 }));
        Wrong(() => NumDouble.Add.Apply(null, Four));
        Wrong(() => NumDouble.Add.Reduce(null));
        Wrong(() => new NumDouble.NdArray((NumCIL.Shape)null));
        Wrong(() => NumDouble.Generate.Zeroes(2, 2).Reshape(new NumCIL.Shape(new long[] { 1, 1 }, 0, new long[] { 1, 3 })));
        Wrong(() => NumDouble.Generate.Zeroes(2, 2).Reshape(new NumCIL.Shape(new long[] { 5 })));
    }
}
