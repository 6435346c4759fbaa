// Views of other shapes: parts, reshaped, turned.
using System;
using System.Collections.Generic;
using System.Linq;

namespace Bh.Managed
{
    internal static class Arrangement
    {
        private const int Index = 0, Slice = 1, Whole = 2, New = 3, Others = 4;

        private static Failure Wrong(Status status, string text) => new Failure(status, text);

        internal static int Axis(int axis, int rank)
        {
            int found = axis < 0 ? axis + rank : axis;
            if (found < 0 || found >= rank) throw Wrong(Status.Argument, "axis " + axis + " of " + rank);
            return found;
        }

        /// <summary>The part that subscripts name, as in Python.</summary>
        internal static View Part(View a, Subscript[] subscripts)
        {
            int taken = subscripts.Count(one => one.Kind <= Whole), rests = subscripts.Count(one => one.Kind == Others);
            if (rests > 1) throw Wrong(Status.Argument, "more than one subscript for all other dimensions");
            if (taken > a.Rank) throw Wrong(Status.Bounds, taken + " subscripts of an array of shape " + View.Show(a.Shape));
            if (rests == 0) subscripts = subscripts.Concat(new[] { new Subscript { Kind = Others } }).ToArray();
            long start = a.Start;
            List<long> shape = new List<long>(), stride = new List<long>();
            int axis = 0;
            foreach (Subscript one in subscripts)
            {
                if (one.Kind == New)
                {
                    shape.Add(1);
                    stride.Add(0);
                    continue;
                }
                for (int many = one.Kind == Others ? a.Rank - taken : 1; many > 0; many--, axis++)
                {
                    if (one.Kind == Index)
                    {
                        start += Within(one.Start, a.Shape[axis], axis) * a.Stride[axis];
                        continue;
                    }
                    long first = 0, step = 1, count = a.Shape[axis];
                    if (one.Kind == Slice) Slices(one, a.Shape[axis], out first, out count, out step);
                    start += count > 0 ? first * a.Stride[axis] : 0;
                    shape.Add(count);
                    stride.Add(a.Stride[axis] * step);
                }
            }
            if (shape.Count > View.MaxRank) throw Wrong(Status.Shape, shape.Count + " dimensions are more than " + View.MaxRank);
            return a.With(start, shape.ToArray(), stride.ToArray());
        }

        private static long Within(long index, long extent, int axis)
        {
            long found = index < 0 ? index + extent : index;
            if (found < 0 || found >= extent) throw Wrong(Status.Bounds, "index " + index + " of " + extent + " in dimension " + axis);
            return found;
        }

        private static void Slices(Subscript slice, long extent, out long first, out long count, out long step)
        {
            step = slice.Step;
            if (step == 0) throw Wrong(Status.Argument, "a slice whose step is 0");
            long lowest = step > 0 ? 0 : -1, highest = step > 0 ? extent : extent - 1;
            Func<long, long, long> within = (bound, omitted) =>
                bound == Native.None ? omitted : Math.Min(Math.Max(bound < 0 ? bound + extent : bound, lowest), highest);
            first = within(slice.Start, step > 0 ? lowest : highest);
            long stop = within(slice.Stop, step > 0 ? highest : lowest);
            decimal distance = step > 0 ? (decimal)stop - first : (decimal)first - stop;
            count = distance <= 0 ? 0 : (long)((distance - 1) / Math.Abs((decimal)step)) + 1;
        }

        internal static View Transpose(View a, int[] axes)
        {
            var order = axes == null ? Enumerable.Range(0, a.Rank).Reverse().ToArray() : axes.Select(axis => Axis(axis, a.Rank)).ToArray();
            if (order.Distinct().Count() != a.Rank) throw Wrong(Status.Argument, "an order of dimensions that names one twice");
            return a.With(a.Start, order.Select(axis => a.Shape[axis]).ToArray(), order.Select(axis => a.Stride[axis]).ToArray());
        }

        internal static View NewAxis(View a, int axis)
        {
            int at = Axis(axis, a.Rank + 1);
            return Part(a, Enumerable.Range(0, a.Rank + 1).Select(one => new Subscript { Kind = one == at ? New : Whole }).ToArray());
        }

        internal static View Reverse(View a, int axis)
        {
            int at = Axis(axis, a.Rank);
            var backwards = new Subscript { Kind = Slice, Start = Native.None, Stop = Native.None, Step = -1 };
            return Part(a, Enumerable.Range(0, a.Rank).Select(one => one == at ? backwards : new Subscript { Kind = Whole }).ToArray());
        }

        internal static View Diagonal(View a, long offset, int first, int second)
        {
            int rows = Axis(first, a.Rank), columns = Axis(second, a.Rank);
            if (rows == columns) throw Wrong(Status.Argument, "a diagonal of a dimension with itself");
            long begin = offset >= 0 ? offset * a.Stride[columns] : -offset * a.Stride[rows];
            long count = Math.Max(0, offset >= 0 ? Math.Min(a.Shape[rows], a.Shape[columns] - offset) : Math.Min(a.Shape[rows] + offset, a.Shape[columns]));
            var others = Enumerable.Range(0, a.Rank).Where(axis => axis != rows && axis != columns).ToArray();
            return a.With(a.Start + (count > 0 ? begin : 0), others.Select(axis => a.Shape[axis]).Concat(new[] { count }).ToArray(),
                others.Select(axis => a.Stride[axis]).Concat(new[] { a.Stride[rows] + a.Stride[columns] }).ToArray());
        }

        /// <summary>Under another shape: a view where one can be, else a copy.</summary>
        internal static View Reshape(View a, long[] shape)
        {
            int open = Array.IndexOf(shape, -1);
            shape = (long[])shape.Clone();
            long known = shape.Where((extent, axis) => axis != open).Aggregate(1L, (product, extent) => product * extent);
            if (open >= 0) shape[open] = known == 0 ? 0 : a.Length / known;
            bool fits = shape.All(extent => extent >= 0) && shape.Aggregate(1L, (product, extent) => product * extent) == a.Length;
            if (!fits || shape.Length > View.MaxRank) throw Wrong(Status.Shape, "an array of shape " + View.Show(a.Shape) + " does not become one of shape " + View.Show(shape));
            long[] stride = Strides(a, shape);
            if (stride != null) return a.With(a.Start, shape, stride);
            View copy = View.New(a.Type, a.Shape);
            Operations.Run(Opcode.Copy, 0, copy, new[] { a });
            return copy.With(0, shape, View.InOrder(shape));
        }

        /// <summary>Strides under which a view has another shape; null if there are none. Dimensions are merged and split from the left.</summary>
        private static long[] Strides(View a, long[] shape)
        {
            var result = View.InOrder(shape);
            if (a.Length == 0) return result;
            var old = Enumerable.Range(0, a.Rank).Where(axis => a.Shape[axis] != 1).ToArray();
            int from = 0, to = 0;
            while (from < old.Length)
            {
                int lastFrom = from, lastTo = to;
                long left = a.Shape[old[from]], right = shape[to];
                while (left != right)
                {
                    if (left < right) left *= a.Shape[old[++lastFrom]];
                    else right *= shape[++lastTo];
                }
                for (int axis = from; axis < lastFrom; axis++)
                {
                    if (a.Stride[old[axis]] != a.Stride[old[axis + 1]] * a.Shape[old[axis + 1]]) return null;
                }
                long step = a.Stride[old[lastFrom]];
                for (int axis = lastTo; axis >= to; axis--)
                {
                    result[axis] = step;
                    step *= shape[axis];
                }
                from = lastFrom + 1;
                to = lastTo + 1;
            }
            return result;
        }
    }
}
