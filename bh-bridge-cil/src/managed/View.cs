// Arrays of the managed engine: memory, views of it, and walks through their elements.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.InteropServices;
using System.Threading;

namespace Bh.Managed
{
    /// <summary>What goes wrong in the engine; the interface makes a status of it.</summary>
    internal sealed class Failure : Exception
    {
        internal readonly Status Status;

        internal Failure(Status status, string text) : base(text)
        {
            Status = status;
        }
    }

    /// <summary>Memory outside the collector's reach, which lives as long as a handle shows it.</summary>
    internal sealed unsafe class Block
    {
        private static long inUse, peak;
        private readonly long bytes;
        private IntPtr memory;
        private int handles;

        internal Block(long bytes)
        {
            this.bytes = bytes;
            try
            {
                memory = Marshal.AllocHGlobal((IntPtr)Math.Max(bytes, 1));
            }
            catch (OutOfMemoryException)
            {
                throw new Failure(Status.Memory, "cannot allocate " + bytes + " bytes of memory");
            }
            for (long at = 0; at < bytes; at += int.MaxValue)
            {
                new Span<byte>((byte*)memory + at, (int)Math.Min(bytes - at, int.MaxValue)).Clear();
            }
            peak = Math.Max(peak, Interlocked.Add(ref inUse, bytes));
        }

        /// <summary>Memory of somebody else's.</summary>
        internal Block(IntPtr memory)
        {
            this.memory = memory;
            GC.SuppressFinalize(this);
        }

        ~Block()
        {
            Free();
        }

        // At the end of a program all finalizers run, that of memory perhaps before those of handles.
        private void Free()
        {
            IntPtr old = Interlocked.Exchange(ref memory, IntPtr.Zero);
            if (old == IntPtr.Zero) return;
            Marshal.FreeHGlobal(old);
            Interlocked.Add(ref inUse, -bytes);
        }

        internal static long InUse => Interlocked.Read(ref inUse);

        internal static long Peak => peak;

        internal byte* Start => (byte*)memory;

        internal void Retain() => handles++;

        /// <summary>A handle is gone, or a temporary that has none; with the last one the memory goes, too.</summary>
        internal void Release()
        {
            if (--handles > 0) return;
            Free();
            GC.SuppressFinalize(this);
        }
    }

    /// <summary>Elements of a block: a start, a shape, and strides, all counted in elements.</summary>
    internal sealed class View
    {
        internal const int MaxRank = 16;

        internal readonly Block Block;
        internal readonly ElementType Type;
        internal readonly long Start;
        internal readonly long[] Shape, Stride;

        internal View(Block block, ElementType type, long start, long[] shape, long[] stride)
        {
            Block = block;
            Type = type;
            Start = start;
            Shape = shape;
            Stride = stride;
        }

        /// <summary>A new array, of zeros.</summary>
        internal static View New(ElementType type, params long[] shape)
        {
            if (shape.Length > MaxRank) throw new Failure(Status.Shape, shape.Length + " dimensions are more than " + MaxRank);
            if (shape.Any(extent => extent < 0)) throw new Failure(Status.Shape, "the shape " + Show(shape) + " has a negative extent");
            decimal bytes = Types.Size(type);
            foreach (long extent in shape)
            {
                bytes *= extent;
                if (bytes > long.MaxValue / 2) throw new Failure(Status.Shape, "an array of shape " + Show(shape) + " is too large");
            }
            return new View(new Block((long)bytes), type, 0, (long[])shape.Clone(), InOrder(shape));
        }

        internal int Rank => Shape.Length;

        internal long Length => Shape.Aggregate(1L, (product, extent) => product * extent);

        internal bool IsInOrder => Stride.SequenceEqual(InOrder(Shape));

        /// <summary>Have several places one element, so that it cannot be written?</summary>
        internal bool IsStretched => Shape.Zip(Stride, (extent, stride) => extent > 1 && stride == 0).Any(it => it);

        internal View With(long start, long[] shape, long[] stride) => new View(Block, Type, start, shape, stride);

        /// <summary>Strides of a new array of a shape.</summary>
        internal static long[] InOrder(long[] shape)
        {
            var stride = new long[shape.Length];
            long step = 1;
            for (int dimension = shape.Length - 1; dimension >= 0; dimension--)
            {
                stride[dimension] = step;
                step *= Math.Max(shape[dimension], 1);
            }
            return stride;
        }

        /// <summary>Stretched to a shape; the last dimensions meet.</summary>
        internal View StretchedTo(long[] shape)
        {
            int added = shape.Length - Rank;
            bool fits = added >= 0 && Enumerable.Range(0, Rank).All(d => Shape[d] == 1 || Shape[d] == shape[added + d]);
            if (!fits) throw new Failure(Status.Shape, "an array of shape " + Show(Shape) + " does not become one of shape " + Show(shape));
            var stride = new long[shape.Length];
            for (int d = 0; d < Rank; d++) stride[added + d] = Shape[d] == 1 ? 0 : Stride[d];
            return With(Start, (long[])shape.Clone(), stride);
        }

        /// <summary>The shape that arrays of two shapes have in common.</summary>
        internal static long[] Common(long[] a, long[] b)
        {
            var shape = new long[Math.Max(a.Length, b.Length)];
            for (int d = 1; d <= shape.Length; d++)
            {
                long left = d <= a.Length ? a[a.Length - d] : 1, right = d <= b.Length ? b[b.Length - d] : 1;
                if (left != right && left != 1 && right != 1)
                {
                    throw new Failure(Status.Shape, "the shapes " + Show(a) + " and " + Show(b) + " do not fit together");
                }
                shape[shape.Length - d] = left == 1 ? right : left;
            }
            return shape;
        }

        internal static string Show(long[] shape) => "(" + string.Join(", ", shape) + (shape.Length == 1 ? ",)" : ")");

        /// <summary>Have both the same elements in the same places?</summary>
        internal bool IsSame(View other) =>
            Block == other.Block && Type == other.Type && Start == other.Start && Shape.SequenceEqual(other.Shape) && Stride.SequenceEqual(other.Stride);
    }

    /// <summary>Walks through the elements of several views of one shape.</summary>
    internal static class Walk
    {
        /// <summary>Elements that are computed at once.</summary>
        internal const int Most = 1024;

        internal delegate void Visit(long[] starts, long[] strides, int count);

        /// <summary>Visits runs of elements in C order: where each view's begins, its stride, and how many these are.</summary>
        internal static void Runs(long[] shape, View[] views, Visit visit)
        {
            if (shape.Contains(0)) return;
            var dimensions = Merged(shape, views);
            var inner = dimensions[dimensions.Count - 1];
            var index = new long[dimensions.Count];
            var at = views.Select(view => view.Start).ToArray();
            var starts = new long[views.Length];
            while (true)
            {
                for (long done = 0; done < inner.Extent; done += Most)
                {
                    for (int v = 0; v < views.Length; v++) starts[v] = at[v] + done * inner.Strides[v];
                    visit(starts, inner.Strides, (int)Math.Min(Most, inner.Extent - done));
                }
                int d = dimensions.Count - 2;
                for (; d >= 0; d--)
                {
                    var outer = dimensions[d];
                    bool goesOn = ++index[d] < outer.Extent;
                    long steps = goesOn ? 1 : 1 - outer.Extent;
                    for (int v = 0; v < views.Length; v++) at[v] += steps * outer.Strides[v];
                    if (goesOn) break;
                    index[d] = 0;
                }
                if (d < 0) return;
            }
        }

        private sealed class Dimension
        {
            internal long Extent;
            internal long[] Strides;
        }

        /// <summary>The dimensions, those that can be walked as one as one; at least one.</summary>
        private static List<Dimension> Merged(long[] shape, View[] views)
        {
            var found = new List<Dimension>();
            for (int d = 0; d < shape.Length; d++)
            {
                if (shape[d] == 1) continue;
                var one = new Dimension { Extent = shape[d], Strides = views.Select(view => view.Stride[d]).ToArray() };
                var before = found.LastOrDefault();
                if (before != null && before.Strides.Zip(one.Strides, (outer, inner) => outer == inner * one.Extent).All(it => it))
                {
                    one.Extent *= before.Extent;
                    found.RemoveAt(found.Count - 1);
                }
                found.Add(one);
            }
            if (found.Count == 0) found.Add(new Dimension { Extent = 1, Strides = new long[views.Length] });
            return found;
        }
    }
}
