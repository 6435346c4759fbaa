// Arrays made from nothing, from memory and from files.
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Bh
{
    /// <summary>New arrays. All functions make them in the thread's current context.</summary>
    public static class Create
    {
        private delegate int Maker(out IntPtr result, IntPtr context, int type, int rank, long[] shape);

        /// <summary>Elements that are undefined until they are written.</summary>
        public static NdArray<T> Empty<T>(Shape shape, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Owned<T>(Make<T>(Native.bh_empty, shape, new Place(file, line)));

        public static NdArray<T> Zeros<T>(Shape shape, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Owned<T>(Make<T>(Native.bh_zeros, shape, new Place(file, line)));

        public static NdArray<T> Ones<T>(Shape shape, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Owned<T>(Make<T>(Native.bh_ones, shape, new Place(file, line)));

        public static NdArray<T> Full<T>(T value, Shape shape, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Owned<T>(Filled(value, shape, new Place(file, line)));

        /// <summary>Uniform in [0, 1) for float and double; all bits for uint and ulong. The same key gives the same numbers.</summary>
        public static NdArray<T> Uniform<T>(Shape shape, ulong key, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Owned<T>(Make<T>((out IntPtr made, IntPtr context, int type, int rank, long[] extents) =>
                Native.bh_random_uniform(out made, context, type, rank, extents, key), shape, new Place(file, line)));

        /// <summary>Normally distributed with mean 0 and variance 1.</summary>
        public static NdArray<T> Normal<T>(Shape shape, ulong key, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Owned<T>(Make<T>((out IntPtr made, IntPtr context, int type, int rank, long[] extents) =>
                Native.bh_random_normal(out made, context, type, rank, extents, key), shape, new Place(file, line)));

        /// <summary>start, start + step, … before stop.</summary>
        public static NdArray<T> Arange<T>(double start, double stop, double step = 1, [CallerFilePath] string file = "",
            [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            int type = Element<T>.Type(place);
            IntPtr made, context = Context.Current.Handle;
            place.Note();
            Fail.Check(Native.bh_arange(out made, context, type, start, stop, step), place);
            return Owned<T>(made);
        }

        /// <summary>0, 1, … below count.</summary>
        public static NdArray<T> Range<T>(long count, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Arange<T>(0, count, 1, file, line);

        /// <summary>`count` evenly spaced numbers from start to stop, both included.</summary>
        public static NdArray<T> Linspace<T>(double start, double stop, long count, [CallerFilePath] string file = "",
            [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            int type = Element<T>.Type(place);
            IntPtr made, context = Context.Current.Handle;
            place.Note();
            Fail.Check(Native.bh_linspace(out made, context, type, start, stop, count), place);
            return Owned<T>(made);
        }

        /// <summary>The contents of a file in NumPy's format, whose type must be T.</summary>
        public static NdArray<T> Load<T>(string path, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            int type = Element<T>.Type(place), found;
            IntPtr made, context = Context.Current.Handle;
            place.Note();
            using (var text = new NativeText(path)) Fail.Check(Native.bh_load(out made, context, text.Address), place);
            Fail.Check(Native.bh_dtype_of(out found, made), place);
            if (found == type) return Owned<T>(made);
            Native.bh_free(made);
            throw Fail.With(Status.Type, "the elements of '" + path + "' are " + (ElementType)found + ", not " + (ElementType)type, place);
        }

        internal static Shape Known(Shape shape, Place place)
        {
            if (shape == null) throw Fail.With(Status.Argument, "the shape is null", place);
            return shape;
        }

        internal static IntPtr Zeroed<T>(Shape shape, Place place) => Make<T>(Native.bh_zeros, shape, place);

        internal static IntPtr Filled<T>(T value, Shape shape, Place place)
        {
            Known(shape, place);
            Element<T>.Type(place);
            IntPtr made, context = Context.Current.Handle;
            place.Note();
            Fail.Check(Native.bh_full(out made, context, Element<T>.Constant(value), shape.Rank, shape.Extents), place);
            return made;
        }

        /// <summary>An array with a copy of the elements of a managed array, which has any number of dimensions.</summary>
        internal static IntPtr From<T>(Array data, Shape shape, Place place)
        {
            int type = Element<T>.Type(place);
            if (shape.Length != data.LongLength)
            {
                throw Fail.With(Status.Shape, data.LongLength + " elements do not make an array of shape " + shape, place);
            }
            IntPtr made = IntPtr.Zero, context = Context.Current.Handle;
            int status = 0;
            Pinned.Read<T>(data, memory =>
            {
                place.Note();
                status = Native.bh_from_data(out made, context, type, shape.Rank, shape.Extents, memory);
            });
            Fail.Check(status, place);
            return made;
        }

        private static NdArray<T> Owned<T>(IntPtr handle) => new NdArray<T>(handle, true);

        private static IntPtr Make<T>(Maker maker, Shape shape, Place place)
        {
            Known(shape, place);
            int type = Element<T>.Type(place);
            IntPtr made, context = Context.Current.Handle;
            place.Note();
            Fail.Check(maker(out made, context, type, shape.Rank, shape.Extents), place);
            return made;
        }
    }

    /// <summary>Keys for random arrays that name none: 1, 2, …</summary>
    internal static class Seeds
    {
        private static long last;

        internal static ulong Next() => (ulong)Interlocked.Increment(ref last);
    }

    /// <summary>The memory of managed arrays while the library uses it.</summary>
    internal static class Pinned
    {
        /// <summary>Lends the elements for reading.</summary>
        internal static void Read<T>(Array data, Action<IntPtr> use) => Lend<T>(data, false, use);

        /// <summary>Lends the elements for writing.</summary>
        internal static void Write<T>(Array data, Action<IntPtr> use) => Lend<T>(data, true, use);

        private static void Lend<T>(Array data, bool isWritten, Action<IntPtr> use)
        {
            // The runtime does not pin arrays of bool, whose elements are bytes all the same.
            Array lent = typeof(T) == typeof(bool) ? new byte[data.Length] : data;
            if (!ReferenceEquals(lent, data) && !isWritten) Buffer.BlockCopy(data, 0, lent, 0, data.Length);
            var pin = GCHandle.Alloc(lent, GCHandleType.Pinned);
            try
            {
                use(pin.AddrOfPinnedObject());
            }
            finally
            {
                pin.Free();
            }
            if (!ReferenceEquals(lent, data) && isWritten) Buffer.BlockCopy(lent, 0, data, 0, data.Length);
        }
    }
}
