// The elements of arrays: copies of them, and their memory.
using System;
using System.Runtime.CompilerServices;

namespace Bh
{
    public sealed partial class NdArray<T>
    {
        /// <summary>All elements in C order; waits for them.</summary>
        public T[] ToArray([CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            IntPtr known = Handle(place);
            var elements = new T[Size];
            Reclaim.BeforeBatch();
            int status = 0;
            Pinned.Write<T>(elements, memory =>
            {
                place.Note();
                status = Native.bh_read(memory, known);
            });
            GC.KeepAlive(this);
            Fail.Check(status, place);
            return elements;
        }

        /// <summary>Overwrites all elements with these, in C order.</summary>
        public void Write(T[] elements, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            if (elements == null) throw Fail.With(Status.Argument, "'elements' is null", place);
            IntPtr known = Operation.Writable(this, place);
            if (elements.LongLength != Size)
            {
                throw Fail.With(Status.Shape, elements.LongLength + " elements for an array of shape " + Shape, place);
            }
            int status = 0;
            Pinned.Read<T>(elements, memory =>
            {
                place.Note();
                status = Native.bh_write(known, memory);
            });
            GC.KeepAlive(this);
            Fail.Check(status, place);
        }

        /// <summary>Writes a file in NumPy's format.</summary>
        public void Save(string path, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            IntPtr known = Handle(place);
            Reclaim.BeforeBatch();
            place.Note();
            using (var text = new NativeText(path)) Fail.Check(Native.bh_save(text.Address, known), place);
            GC.KeepAlive(this);
        }

        /// <summary>
        /// The memory of the array, until the result is disposed. Meanwhile no operation may change the array, nor, if it is
        /// mapped for writing, use it.
        /// </summary>
        public Mapping<T> Map(Access access = Access.Read, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            IntPtr address, known = (access & Access.Write) != 0 ? Operation.Writable(this, place) : Handle(place);
            var strides = new long[Rank];
            Reclaim.BeforeBatch();
            place.Note();
            Fail.Check(Native.bh_map(out address, known, (uint)access), place);
            if (strides.Length > 0) Fail.Check(Native.bh_stride(strides, known), place);
            return new Mapping<T>(this, address, strides);
        }

        internal void Unmap(Place place)
        {
            IntPtr known = owner.Handle;
            // Disposing the array, or its context, ended the mapping.
            if (known != IntPtr.Zero) Fail.Check(Native.bh_unmap(known), place);
            GC.KeepAlive(this);
        }
    }

    /// <summary>Direct access to the memory of an array.</summary>
    public sealed class Mapping<T> : IDisposable
    {
        private readonly NdArray<T> array;
        private IntPtr address;

        internal Mapping(NdArray<T> array, IntPtr address, long[] strides)
        {
            this.array = array;
            this.address = address;
            Strides = strides;
        }

        /// <summary>Address of the first element.</summary>
        public IntPtr Address
        {
            get
            {
                if (address == IntPtr.Zero && array.Size != 0 || array.IsDisposed)
                {
                    throw Fail.With(Status.Handle, "the mapping is over", default(Place));
                }
                return address;
            }
        }

        public Shape Shape => array.Shape;

        /// <summary>Distances of elements along the dimensions, in elements.</summary>
        public long[] Strides { get; }

        /// <summary>Do the elements lie in C order without gaps?</summary>
        public bool IsContiguous
        {
            get
            {
                long expected = 1;
                for (int dimension = Strides.Length - 1; dimension >= 0; dimension--)
                {
                    if (Shape[dimension] != 1 && Strides[dimension] != expected) return false;
                    expected *= Shape[dimension];
                }
                return true;
            }
        }

        /// <summary>The elements of a contiguous mapping of fewer than 2³¹; not to be used after `Dispose`.</summary>
        public unsafe Span<T> Span
        {
            get
            {
                if (!IsContiguous || Shape.Length > int.MaxValue)
                {
                    throw Fail.With(Status.Shape, "the elements are no span: use Address and Strides", default(Place));
                }
                return new Span<T>((void*)Address, (int)Shape.Length);
            }
        }

        public void Dispose()
        {
            if (address == IntPtr.Zero) return;
            address = IntPtr.Zero;
            array.Unmap(Place.OfOperator());
        }
    }
}
