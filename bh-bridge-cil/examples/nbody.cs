// Bodies that attract each other: all forces of all pairs, by broadcasting.
//
//   nbody [BODIES [STEPS]]
using System;
using Bh;
using NdArray = Bh.NdArray<double>;
using R = Bh.Range;

static class NBody
{
    const double Dt = 0.0001, Softening = 0.01;

    static void Main(string[] arguments)
    {
        int count = arguments.Length > 0 ? int.Parse(arguments[0]) : 1000;
        int steps = arguments.Length > 1 ? int.Parse(arguments[1]) : 10;
        var mass = 1 + Fingerprint.Pseudo(count, 15);
        var position = new NdArray[3];
        var velocity = new NdArray[3];
        for (int axis = 0; axis < 3; axis++)
        {
            position[axis] = Fingerprint.Pseudo(count, 16 + axis);
            velocity[axis] = Create.Zeros<double>(count);
        }
        Context.Default.Sync();
        var clock = System.Diagnostics.Stopwatch.StartNew();
        for (int step = 0; step < steps; step++)
        {
            using (new Temporaries())
            {
                var distance = new NdArray[3];
                for (int axis = 0; axis < 3; axis++)
                {
                    distance[axis] = position[axis][R.NewAxis, R.All] - position[axis][R.All, R.NewAxis];
                }
                var square = distance[0] * distance[0] + distance[1] * distance[1] + distance[2] * distance[2] + Softening;
                var pull = mass[R.NewAxis, R.All] / (square * square.Sqrt());
                for (int axis = 0; axis < 3; axis++)
                {
                    velocity[axis].Add(Dt * (pull * distance[axis]).Sum(1), output: velocity[axis]);
                }
                for (int axis = 0; axis < 3; axis++) position[axis].Add(Dt * velocity[axis], output: position[axis]);
            }
        }
        Context.Default.Sync();
        Fingerprint.Seconds(clock);
        for (int axis = 0; axis < 3; axis++) Fingerprint.Print("position", position[axis]);
        for (int axis = 0; axis < 3; axis++) Fingerprint.Print("velocity", velocity[axis]);
    }
}
