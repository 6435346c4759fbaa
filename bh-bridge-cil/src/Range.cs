// Subscripts of arrays.
namespace Bh
{
    /// <summary>One subscript: an index, a slice, all of a dimension, or a new dimension.</summary>
    public struct Range
    {
        private const int Index = 0, Part = 1, Whole = 2, New = 3, Others = 4;

        private readonly int kind;
        private readonly long start, stop, step;

        private Range(int kind, long start, long stop, long step)
        {
            this.kind = kind;
            this.start = start;
            this.stop = stop;
            this.step = step;
        }

        /// <summary>
        /// `length` elements from `offset` on, `stride` apart. The length 0 stands for the rest, a negative one for the rest
        /// without that many.
        /// </summary>
        public Range(long offset, long length = 0, long stride = 1)
            : this(Part, offset, length > 0 ? unchecked(offset + length * stride) : Bound(length), stride)
        {
            // Bounds that leave the dimension at an end would count from the other one.
            if (length > 0 && offset < 0 != stop < 0) stop = End;
        }

        /// <summary>An omitted bound.</summary>
        public const long End = Native.None;

        /// <summary>All of a dimension.</summary>
        public static readonly Range All = new Range(Whole, 0, 0, 1);

        /// <summary>A new dimension of extent 1.</summary>
        public static readonly Range NewAxis = new Range(New, 0, 0, 1);

        /// <summary>All dimensions that the other subscripts leave over.</summary>
        public static readonly Range Rest = new Range(Others, 0, 0, 1);

        /// <summary>
        /// The elements from `start` on before `stop`, `stride` apart. Negative bounds count from the end; the stop 0 stands
        /// for the end.
        /// </summary>
        public static Range Slice(long start, long stop = 0, long stride = 1) => new Range(Part, start, Bound(stop), stride);

        /// <summary>One index, whose dimension goes.</summary>
        public static Range El(long index) => new Range(Index, index, 0, 1);

        public static implicit operator Range(long index) => El(index);

        public static implicit operator Range(int index) => El(index);

        internal Subscript Subscript => new Subscript { Kind = kind, Start = start, Stop = stop, Step = step };

        private static long Bound(long stop) => stop == 0 ? End : stop;
    }
}
