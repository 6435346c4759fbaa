// Extents of arrays.
using System.Linq;

namespace Bh
{
    /// <summary>The extents of an array.</summary>
    public sealed class Shape
    {
        /// <summary>One dimension, as NumCIL gives it.</summary>
        public struct Dimension
        {
            public readonly long Length;

            internal Dimension(long length)
            {
                Length = length;
            }
        }

        private readonly long[] extents;

        public Shape(params long[] extents)
        {
            this.extents = (long[])(extents ?? new long[0]).Clone();
        }

        public int Rank => extents.Length;

        public long this[int dimension] => extents[dimension];

        /// <summary>The number of elements.</summary>
        public long Length => extents.Aggregate(1L, (product, extent) => product * extent);

        public long Elements => Length;

        public Dimension[] Dimensions => extents.Select(extent => new Dimension(extent)).ToArray();

        public long[] ToArray() => (long[])extents.Clone();

        internal long[] Extents => extents;

        public static implicit operator Shape(long extent) => new Shape(extent);

        public static implicit operator Shape(long[] extents) => new Shape(extents);

        public static implicit operator Shape(int[] extents) => new Shape(extents.Select(extent => (long)extent).ToArray());

        public override bool Equals(object other) => other is Shape && extents.SequenceEqual(((Shape)other).extents);

        public override int GetHashCode() => extents.Aggregate(17, (hash, extent) => unchecked(hash * 31 + (int)extent));

        public override string ToString() => "(" + string.Join(", ", extents) + ")";
    }
}
