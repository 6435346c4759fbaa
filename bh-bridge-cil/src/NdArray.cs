// Arrays: their handles, their life, and what they are.
using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Bh
{
    /// <summary>
    /// A view of data that the library holds. Operations are recorded, and run when something looks at a result. A number
    /// converts to an array without dimensions, so that operators take numbers. Any thread may use any array.
    /// </summary>
    public sealed partial class NdArray<T> : IDisposable
    {
        // Zero for numbers until somebody needs an array, and for what is disposed.
        private IntPtr handle;
        private readonly T number;
        private readonly bool isNumber;
        // Bytes of data of its own, for the garbage collection.
        private readonly long bytes;
        private Shape shape;

        private NdArray(T number)
        {
            this.number = number;
            isNumber = true;
            GC.SuppressFinalize(this);
        }

        internal NdArray(IntPtr handle, bool ownsData)
        {
            this.handle = handle;
            if (!ownsData) return;
            bytes = Shape.Length * Element<T>.Size;
            Reclaim.Made(bytes);
        }

        /// <summary>An array with a copy of these elements.</summary>
        public NdArray(T[] data, Shape shape = null, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            if (data == null) throw Fail.With(Status.Argument, "'data' is null", place);
            this.shape = shape ?? new Shape(data.Length);
            handle = Create.From<T>(data, this.shape, place);
            bytes = (long)data.Length * Element<T>.Size;
            Reclaim.Made(bytes);
        }

        /// <summary>A matrix with a copy of these elements.</summary>
        public NdArray(T[,] data, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            if (data == null) throw Fail.With(Status.Argument, "'data' is null", place);
            shape = new Shape(data.GetLength(0), data.GetLength(1));
            handle = Create.From<T>(data, shape, place);
            bytes = (long)data.Length * Element<T>.Size;
            Reclaim.Made(bytes);
        }

        /// <summary>An array of zeros.</summary>
        public NdArray(Shape shape, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            this.shape = Create.Known(shape, new Place(file, line));
            handle = Create.Zeroed<T>(this.shape, new Place(file, line));
            bytes = this.shape.Length * Element<T>.Size;
            Reclaim.Made(bytes);
        }

        ~NdArray()
        {
            Reclaim.InFinalizer();
            Release();
        }

        /// <summary>Frees the array now. The data goes when recorded operations and other views no longer need it.</summary>
        public void Dispose()
        {
            if (isNumber) return;
            Release();
            GC.SuppressFinalize(this);
        }

        private void Release()
        {
            IntPtr old = Interlocked.Exchange(ref handle, IntPtr.Zero);
            if (old == IntPtr.Zero) return;
            // Fails if the context has ended, which took the array with it.
            Native.bh_free(old);
            Reclaim.Freed(bytes);
        }

        public static implicit operator NdArray<T>(T number) => new NdArray<T>(number);

        /// <summary>0 and 1 for false and true.</summary>
        public static explicit operator NdArray<T>(NdArray<bool> a) =>
            Operation.Cast<bool, T>(a, Place.OfOperator());

        /// <summary>The elements converted to another type, as the library's cast does.</summary>
        public NdArray<U> Cast<U>([CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            Operation.Cast<T, U>(this, new Place(file, line));

        /// <summary>The array as an operand of the call that follows.</summary>
        internal IntPtr Operand(Place place) => isNumber ? Element<T>.Constant(Supported(place)) : Handle(place);

        internal bool IsNumber => isNumber;

        private T Supported(Place place)
        {
            Element<T>.Type(place);
            return number;
        }

        /// <summary>The handle; numbers become arrays.</summary>
        internal IntPtr Handle(Place place = default(Place))
        {
            IntPtr found = handle;
            if (found != IntPtr.Zero) return found;
            if (!isNumber) throw Fail.With(Status.Handle, "the array is disposed", place);
            lock (this)
            {
                if (handle != IntPtr.Zero) return handle;
                found = Create.Filled(number, new Shape(), place);
                handle = found;
                GC.ReRegisterForFinalize(this);
                return found;
            }
        }

        public Shape Shape
        {
            get
            {
                if (isNumber) return shape = new Shape();
                IntPtr known = Handle();
                if (shape != null) return shape;
                int rank;
                Fail.Check(Native.bh_rank(out rank, known));
                var extents = new long[rank];
                if (rank > 0) Fail.Check(Native.bh_shape(extents, known));
                GC.KeepAlive(this);
                return shape = new Shape(extents);
            }
        }

        public int Rank => Shape.Rank;

        /// <summary>The number of elements.</summary>
        public long Size => Shape.Length;

        public bool IsDisposed => !isNumber && handle == IntPtr.Zero;

        /// <summary>The elements as text, large arrays by their edges.</summary>
        public override string ToString()
        {
            if (IsDisposed) return "(disposed)";
            Reclaim.BeforeBatch();
            IntPtr text;
            Fail.Check(Native.bh_format(out text, Handle()));
            GC.KeepAlive(this);
            return Fail.Text(text);
        }
    }
}
