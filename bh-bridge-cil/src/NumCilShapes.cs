// The names of NumCIL's programs besides arrays: subscripts, shapes, and the switch to Bohrium.
using System;
using System.Linq;

namespace NumCIL
{
    /// <summary>One subscript.</summary>
    public struct Range
    {
        private readonly Bh.Range range;

        private Range(Bh.Range range)
        {
            this.range = range;
        }

        public Range(long offset, long length = 0, long stride = 1) : this(new Bh.Range(offset, length, stride)) { }

        public static readonly Range All = new Range(Bh.Range.All), NewAxis = new Range(Bh.Range.NewAxis), Rest = new Range(Bh.Range.Rest);

        public static Range Slice(long start, long stop = 0, long stride = 1) => new Range(Bh.Range.Slice(start, stop, stride));

        public static Range El(long index) => new Range(Bh.Range.El(index));

        public static implicit operator Range(long index) => El(index);

        internal static Bh.Range[] Each(Range[] ranges) => ranges?.Select(one => one.range).ToArray();
    }

    /// <summary>Extents of an array; with strides they name a view of data.</summary>
    public sealed class Shape
    {
        public struct Dimension
        {
            public readonly long Length, Stride;

            internal Dimension(long length, long stride)
            {
                Length = length;
                Stride = stride;
            }
        }

        private readonly Bh.Shape extents;
        private readonly long[] strides;

        public Shape(params long[] extents) : this(new Bh.Shape(extents)) { }

        /// <summary>Every `strides[i]`-th element of the data for dimension i, from the element `offset` on.</summary>
        public Shape(long[] extents, long offset, long[] strides) : this(extents)
        {
            Offset = offset;
            this.strides = strides;
        }

        internal Shape(Bh.Shape extents)
        {
            this.extents = extents;
        }

        public long Offset { get; }

        public long Elements => extents.Length;

        public Dimension[] Dimensions
        {
            get
            {
                var dense = Dense();
                return extents.ToArray().Select((length, i) => new Dimension(length, (strides ?? dense)[i])).ToArray();
            }
        }

        public static implicit operator Shape(long[] extents) => new Shape(extents);

        public static implicit operator Shape(long extent) => new Shape(extent);

        public static implicit operator Bh.Shape(Shape shape) => shape?.extents;

        public override string ToString() => extents.ToString();

        /// <summary>The strides of elements in C order.</summary>
        private long[] Dense()
        {
            var dense = new long[extents.Rank];
            long stride = 1;
            for (int i = extents.Rank - 1; i >= 0; i--)
            {
                dense[i] = stride;
                stride *= extents[i];
            }
            return dense;
        }

        /// <summary>An array's data in this shape.</summary>
        internal Bh.NdArray<T> Of<T>(Bh.NdArray<T> data, string file, int line)
        {
            if (strides == null) return data.Reshape(extents, file, line);
            var flat = data.Flatten(file, line);
            if (strides.Length == extents.Rank && strides.SequenceEqual(Dense()))
            {
                return flat[new Bh.Range(Offset, Elements)].Reshape(extents, file, line);
            }
            if (extents.Rank != 1 || strides.Length != 1 || strides[0] < 1)
            {
                throw Bh.Fail.With(Bh.Status.Argument, "strides other than those of rows take one dimension, and are positive", new Bh.Place(file, line));
            }
            return flat[new Bh.Range(Offset, extents[0], strides[0])];
        }

        /// <summary>An index for each dimension: those that are left out are 0, and a number has one element.</summary>
        internal long[] Whole(long[] index)
        {
            if (extents.Rank == 0 && index.All(one => one == 0)) return new long[0];
            return index.Concat(Enumerable.Repeat(0L, Math.Max(0, extents.Rank - index.Length))).ToArray();
        }

        internal static T Need<T>(T value, string name, string file, int line) where T : class
        {
            if (value == null) throw Bh.Fail.With(Bh.Status.Argument, name + " is null", new Bh.Place(file, line));
            return value;
        }

        internal static Shape Need(Shape shape, string file, int line) => Need(shape, "the shape", file, line);
    }
}

namespace NumCIL.Bohrium
{
    public static class Utility
    {
        /// <summary>Programs call it before all else; here arrays are bh's from the start.</summary>
        public static void Activate() { }
    }
}
