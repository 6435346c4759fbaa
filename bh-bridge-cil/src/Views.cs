// Parts and other arrangements of arrays, which share their data.
using System;
using System.Linq;
using System.Runtime.CompilerServices;

namespace Bh
{
    public sealed partial class NdArray<T>
    {
        /// <summary>The part that the subscripts name, as a view; assigning writes its elements.</summary>
        public NdArray<T> this[params Range[] ranges]
        {
            get { return Part(ranges, Place.OfOperator()); }
            set
            {
                Place place = Place.OfOperator();
                Operation.Need(value, "the value", place);
                // `a[r] += b` ends with assigning the part to itself.
                using (var part = Part(ranges, place)) part.Assign(value, place);
            }
        }

        /// <summary>Single elements, as numbers.</summary>
        public Elements Value => new Elements(this);

        public sealed class Elements
        {
            private readonly NdArray<T> array;

            internal Elements(NdArray<T> array)
            {
                this.array = array;
            }

            public T this[params long[] index]
            {
                get
                {
                    using (var part = At(index)) return part.Take();
                }
                set
                {
                    Place place = Place.OfOperator();
                    using (var part = At(index)) part.Assign(value, place);
                }
            }

            private NdArray<T> At(long[] index)
            {
                Place place = Place.OfOperator();
                if (index.Length != array.Rank)
                {
                    throw Fail.With(Status.Argument,
                        index.Length + " indices for an array of shape " + array.Shape, place);
                }
                return array.Part(index.Select(Range.El).ToArray(), place);
            }
        }

        private NdArray<T> Part(Range[] ranges, Place place)
        {
            if (ranges == null) throw Fail.With(Status.Argument, "the subscripts are null", place);
            var subscripts = new Subscript[ranges.Length];
            for (int i = 0; i < subscripts.Length; i++) subscripts[i] = ranges[i].Subscript;
            IntPtr part, whole = Handle(place);
            place.Note();
            int status = Native.bh_part(out part, whole, (UIntPtr)(uint)subscripts.Length, subscripts);
            return View(status, part, place);
        }

        private NdArray<T> View(int status, IntPtr made, Place place)
        {
            GC.KeepAlive(this);
            Fail.Check(status, place);
            return new NdArray<T>(made, false);
        }

        /// <summary>The part that a subscript of one dimension names.</summary>
        public NdArray<T> Subview(Range range, int dimension = 0, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            if (dimension < 0 || dimension >= Rank)
            {
                throw Fail.With(Status.Argument, "dimension " + dimension + " of an array of shape " + Shape, place);
            }
            return Part(Enumerable.Repeat(Range.All, dimension).Concat(new[] { range }).ToArray(), place);
        }

        /// <summary>With its dimensions reordered, by default reversed.</summary>
        public NdArray<T> Transpose(int[] axes = null, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            if (axes != null && axes.Length != Rank)
            {
                throw Fail.With(Status.Argument, axes.Length + " axes for an array of shape " + Shape, place);
            }
            IntPtr made, whole = Handle(place);
            place.Note();
            return View(Native.bh_transpose(out made, whole, axes), made, place);
        }

        /// <summary>With its dimensions in reverse order.</summary>
        public NdArray<T> Transposed => Transpose();

        /// <summary>The elements in C order under another shape; one extent may be -1. A copy where no view can be.</summary>
        public NdArray<T> Reshape(Shape to, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            Create.Known(to, place);
            IntPtr made, whole = Handle(place);
            place.Note();
            return View(Native.bh_reshape(out made, whole, to.Rank, to.Extents), made, place);
        }

        /// <summary>In one dimension.</summary>
        public NdArray<T> Flatten([CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Reshape(-1, file, line);

        /// <summary>Stretched to a larger shape; only to be read.</summary>
        public NdArray<T> BroadcastTo(Shape to, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            Create.Known(to, place);
            IntPtr made, whole = Handle(place);
            place.Note();
            return View(Native.bh_broadcast(out made, whole, to.Rank, to.Extents), made, place);
        }

        /// <summary>The diagonal of two dimensions as a last dimension.</summary>
        public NdArray<T> Diagonal(long offset = 0, int first = 0, int second = 1, [CallerFilePath] string file = "",
            [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            IntPtr made, whole = Handle(place);
            place.Note();
            return View(Native.bh_diagonal(out made, whole, offset, first, second), made, place);
        }

        /// <summary>With one dimension walked backwards.</summary>
        public NdArray<T> Reverse(int dimension, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            IntPtr made, whole = Handle(place);
            place.Note();
            return View(Native.bh_reverse(out made, whole, dimension), made, place);
        }

        /// <summary>With a new dimension of extent 1.</summary>
        public NdArray<T> NewAxis(int dimension, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            IntPtr made, whole = Handle(place);
            place.Note();
            return View(Native.bh_new_axis(out made, whole, dimension), made, place);
        }
    }
}
