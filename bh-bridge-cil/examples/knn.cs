// The four nearest of many points for each of a tenth as many others, in three dimensions: the squared distances.
//
//   knn [POINTS [SEARCHES]]
using System;
using System.Collections.Generic;
using Bh;
using NdArray = Bh.NdArray<double>;
using R = Bh.Range;

static class Knn
{
    const int NearestCount = 4;

    static List<NdArray> Search(NdArray[] points, NdArray[] queries)
    {
        NdArray distance = null;
        for (int axis = 0; axis < 3; axis++)
        {
            var away = (points[axis][R.NewAxis, R.All] - queries[axis][R.All, R.NewAxis]).Pow(2);
            distance = axis == 0 ? away : distance + away;
        }
        var nearest = new List<NdArray> { distance.Min(1) };
        while (nearest.Count < NearestCount)
        {
            // Everything up to the last minimum is out of the race.
            var last = nearest[nearest.Count - 1][R.All, R.NewAxis];
            distance = Functions.Where(distance <= last, double.PositiveInfinity, distance);
            nearest.Add(distance.Min(1));
        }
        return nearest;
    }

    static void Main(string[] arguments)
    {
        int count = arguments.Length > 0 ? int.Parse(arguments[0]) : 10000;
        int searches = arguments.Length > 1 ? int.Parse(arguments[1]) : 1;
        var points = new NdArray[3];
        var queries = new NdArray[3];
        for (int axis = 0; axis < 3; axis++)
        {
            points[axis] = Fingerprint.Pseudo(count, 28 + axis);
            queries[axis] = Fingerprint.Pseudo(count / 10, 31 + 2 * axis);
        }
        Context.Default.Sync();
        var clock = System.Diagnostics.Stopwatch.StartNew();
        var nearest = new List<NdArray>();
        for (int search = 0; search < searches; search++)
        {
            using (var temporaries = new Temporaries())
            {
                nearest = Search(points, queries);
                foreach (var row in nearest) temporaries.Keep(row);
            }
            Context.Default.Sync();
        }
        Fingerprint.Seconds(clock);
        foreach (var row in nearest) Fingerprint.Print("nearest", row);
    }
}
