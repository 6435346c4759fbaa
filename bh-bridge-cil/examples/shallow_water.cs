// Waves in a square basin: the shallow water equations by the method of Lax and Wendroff.
//
//   shallow_water [SIZE [STEPS]]
//
// A drop falls into the basin; its walls reflect the waves.
using System;
using Bh;
using NdArray = Bh.NdArray<double>;
using R = Bh.Range;

static class ShallowWater
{
    const double Gravity = 9.8, Dt = 0.02, Dx = 1.0;

    // The flow through a point in a direction: of the height, of the momentum in it, and of the momentum across it.
    struct Flow
    {
        public NdArray Height, Along, Across;
    }

    static Flow Flux(NdArray height, NdArray along, NdArray across) => new Flow
    {
        Height = along,
        Along = along * along / height + 0.5 * Gravity * height * height,
        Across = along * across / height,
    };

    // Walls: heights continue, the momentum across the wall turns round.
    static void Reflect(NdArray h, NdArray u, NdArray v)
    {
        foreach (var f in new[] { h, u, v })
        {
            double x = f == u ? -1.0 : 1.0, y = f == v ? -1.0 : 1.0;
            f[0, R.All] = x * f[1, R.All];
            f[-1, R.All] = x * f[-2, R.All];
            f[R.All, 0] = y * f[R.All, 1];
            f[R.All, -1] = y * f[R.All, -2];
        }
    }

    static readonly R Left = R.Slice(0, -1), Right = R.Slice(1), Inner = R.Slice(1, -1);

    static NdArray HalfX(NdArray q, NdArray f) =>
        0.5 * (q[Right, Inner] + q[Left, Inner]) - Dt / (2 * Dx) * (f[Right, Inner] - f[Left, Inner]);

    static NdArray HalfY(NdArray q, NdArray f) =>
        0.5 * (q[Inner, Right] + q[Inner, Left]) - Dt / (2 * Dx) * (f[Inner, Right] - f[Inner, Left]);

    static void Advance(NdArray q, NdArray x, NdArray y)
    {
        q[Inner, Inner] -= Dt / Dx * (x[Right, R.All] - x[Left, R.All] + y[R.All, Right] - y[R.All, Left]);
    }

    static void Step(NdArray h, NdArray u, NdArray v)
    {
        Reflect(h, u, v);
        // Half a step, at the middles between points in x and in y.
        Flow fx = Flux(h, u, v), fy = Flux(h, v, u);
        Flow gx = Flux(HalfX(h, fx.Height), HalfX(u, fx.Along), HalfX(v, fx.Across));
        Flow gy = Flux(HalfY(h, fy.Height), HalfY(v, fy.Along), HalfY(u, fy.Across));
        // The whole step, with the flows at those middles.
        Advance(h, gx.Height, gy.Height);
        Advance(u, gx.Along, gy.Across);
        Advance(v, gx.Across, gy.Along);
    }

    static void Main(string[] arguments)
    {
        int size = arguments.Length > 0 ? int.Parse(arguments[0]) : 500;
        int steps = arguments.Length > 1 ? int.Parse(arguments[1]) : 100;
        var shape = new Shape(size + 2, size + 2);
        var x = Create.Linspace<double>(-3, 3, size);
        var y = x[R.NewAxis].Transposed;
        NdArray h = Create.Zeros<double>(shape) + 1.0, u = Create.Zeros<double>(shape), v = u.Clone();
        h[Inner, Inner] += (-(x * x + y * y)).Exp() * 0.5;
        Context.Default.Sync();
        var clock = System.Diagnostics.Stopwatch.StartNew();
        for (int i = 0; i < steps; ++i)
        {
            using (new Temporaries()) Step(h, u, v);
        }
        Context.Default.Sync();
        Fingerprint.Seconds(clock);
        Fingerprint.Print("height", h);
        Fingerprint.Print("momentum in x", u);
        Fingerprint.Print("momentum in y", v);
    }
}
