// Arrays: their handles, their life, and what they are.
using System;
using System.Runtime.CompilerServices;

namespace Bh
{
    /// <summary>
    /// A view of data that the library holds. Operations are recorded, and run when something looks at a result. A number
    /// converts to an array without dimensions, so that operators take numbers. Any thread may use any array.
    /// </summary>
    public sealed partial class NdArray<T> : IDisposable
    {
        // Null for numbers until somebody needs an array.
        private Owner owner;
        private readonly T number;
        private readonly bool isNumber;
        private Shape shape;

        private NdArray(T number)
        {
            this.number = number;
            isNumber = true;
            GC.SuppressFinalize(this);
        }

        internal NdArray(IntPtr handle, bool ownsData)
        {
            shape = ShapeOf(handle);
            owner = Reclaim.Watch(this, handle, ownsData ? Bytes : 0);
        }

        /// <summary>An array with a copy of these elements.</summary>
        public NdArray(T[] data, Shape shape = null, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            if (data == null) throw Fail.With(Status.Argument, "'data' is null", place);
            this.shape = shape ?? new Shape(data.Length);
            owner = Reclaim.Watch(this, Create.From<T>(data, this.shape, place), Bytes);
        }

        /// <summary>A matrix with a copy of these elements.</summary>
        public NdArray(T[,] data, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            if (data == null) throw Fail.With(Status.Argument, "'data' is null", place);
            shape = new Shape(data.GetLength(0), data.GetLength(1));
            owner = Reclaim.Watch(this, Create.From<T>(data, shape, place), Bytes);
        }

        /// <summary>An array of zeros.</summary>
        public NdArray(Shape shape, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            this.shape = Create.Known(shape, new Place(file, line));
            owner = Reclaim.Watch(this, Create.Zeroed<T>(this.shape, new Place(file, line)), Bytes);
        }

        ~NdArray()
        {
            // Null if the constructor threw.
            owner?.Release();
        }

        /// <summary>Frees the array now. The data goes when recorded operations and other views no longer need it.</summary>
        public void Dispose()
        {
            if (isNumber) return;
            owner.Release();
            GC.SuppressFinalize(this);
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

        /// <summary>Null for a number that no array was made of.</summary>
        internal Owner Owner => owner;

        internal bool IsNumber => isNumber;

        private T Supported(Place place)
        {
            Element<T>.Type(place);
            return number;
        }

        /// <summary>The handle; numbers become arrays.</summary>
        internal IntPtr Handle(Place place = default(Place))
        {
            if (isNumber && owner == null) Materialize(place);
            IntPtr found = owner.Handle;
            if (found == IntPtr.Zero) throw Fail.With(Status.Handle, "the array is disposed", place);
            return found;
        }

        private void Materialize(Place place)
        {
            lock (this)
            {
                if (owner != null) return;
                owner = Reclaim.Watch(this, Create.Filled(number, new Shape(), place), 0);
                GC.ReRegisterForFinalize(this);
            }
        }

        public Shape Shape
        {
            get
            {
                if (isNumber) return shape ?? (shape = new Shape());
                Handle();
                return shape;
            }
        }

        private static Shape ShapeOf(IntPtr handle)
        {
            int rank;
            Fail.Check(Native.bh_rank(out rank, handle));
            var extents = new long[rank];
            if (rank > 0) Fail.Check(Native.bh_shape(extents, handle));
            return new Shape(extents);
        }

        private long Bytes => shape.Length * Element<T>.Size;

        public int Rank => Shape.Rank;

        /// <summary>The number of elements.</summary>
        public long Size => Shape.Length;

        public bool IsDisposed => !isNumber && owner.Handle == IntPtr.Zero;

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
