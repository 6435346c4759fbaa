// Heat in a square plate with fixed borders, by Jacobi iteration: the program of the Bohrium papers in NumCIL, whose loop
// ends after a number of iterations, too.
//
//   heat [SIZE [ITERATIONS]]
using System;
using NumCIL.Double;
using R = NumCIL.Range;

static class Heat
{
    static double Solve(NdArray grid, double epsilon, int iterations)
    {
        var center = grid[R.Slice(1, -1), R.Slice(1, -1)];
        var north = grid[R.Slice(0, -2), R.Slice(1, -1)];
        var south = grid[R.Slice(2, 0), R.Slice(1, -1)];
        var east = grid[R.Slice(1, -1), R.Slice(2, 0)];
        var west = grid[R.Slice(1, -1), R.Slice(0, -2)];
        var delta = epsilon + 1;
        while (delta > epsilon && iterations-- > 0)
        {
            var tmp = 0.2 * (center + north + east + west + south);
            delta = (tmp - center).Abs().Sum();
            center[R.All] = tmp;
        }
        return delta;
    }

    static void Main(string[] arguments)
    {
        int size = arguments.Length > 0 ? int.Parse(arguments[0]) : 1000;
        int iterations = arguments.Length > 1 ? int.Parse(arguments[1]) : 100;
        var grid = Generate.Zeroes(size, size);
        grid[R.All, 0] = -273.15;
        grid[R.All, -1] = -273.15;
        grid[-1] = -273.15;
        grid[0] = 40.0;
        var clock = System.Diagnostics.Stopwatch.StartNew();
        double delta = Solve(grid, 1e-3, iterations);
        Bh.Context.Default.Sync();
        Fingerprint.Seconds(clock);
        Fingerprint.Print("delta", delta);
        Fingerprint.Print("grid", grid);
    }
}
