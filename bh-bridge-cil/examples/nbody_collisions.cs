// Bodies that attract each other; those that touch push each other apart instead, and are counted.
//
//   nbody_collisions [BODIES [STEPS]]
using System;
using Bh;
using NdArray = Bh.NdArray<double>;
using R = Bh.Range;

static class NBodyCollisions
{
    const double Dt = 0.0001, Softening = 0.01, Stiffness = 100;

    static void Main(string[] arguments)
    {
        int count = arguments.Length > 0 ? int.Parse(arguments[0]) : 1000;
        int steps = arguments.Length > 1 ? int.Parse(arguments[1]) : 10;
        var mass = 1 + Fingerprint.Pseudo(count, 60);
        var radius = 0.05 + 0.1 * Fingerprint.Pseudo(count, 61);
        var position = new NdArray[3];
        var velocity = new NdArray[3];
        for (int axis = 0; axis < 3; axis++)
        {
            position[axis] = Fingerprint.Pseudo(count, 62 + axis);
            velocity[axis] = Create.Zeros<double>(count);
        }
        long touched = 0;
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
                var square = distance[0] * distance[0] + distance[1] * distance[1] + distance[2] * distance[2];
                var reach = radius[R.NewAxis, R.All] + radius[R.All, R.NewAxis];
                var touching = square < reach * reach;
                var bodies = touching.Cast<long>().Sum(Axis.All);
                var soft = square + Softening;
                var push = Functions.Where(touching, -Stiffness, mass[R.NewAxis, R.All] / (soft * soft.Sqrt()));
                for (int axis = 0; axis < 3; axis++)
                {
                    velocity[axis].Add(Dt * (push * distance[axis]).Sum(1), output: velocity[axis]);
                }
                for (int axis = 0; axis < 3; axis++) position[axis].Add(Dt * velocity[axis], output: position[axis]);
                touched += bodies.Take() - count;
            }
        }
        Context.Default.Sync();
        Fingerprint.Seconds(clock);
        for (int axis = 0; axis < 3; axis++) Fingerprint.Print("position", position[axis]);
        for (int axis = 0; axis < 3; axis++) Fingerprint.Print("velocity", velocity[axis]);
        Fingerprint.Print("touched", touched);
    }
}
