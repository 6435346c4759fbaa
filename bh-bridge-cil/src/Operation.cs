// Recording of operations.
using System;
using System.Runtime.CompilerServices;

namespace Bh
{
    /// <summary>Axes of reductions.</summary>
    public static class Axis
    {
        /// <summary>All axes.</summary>
        public const int All = Native.AllAxes;
    }

    internal static class Operation
    {
        internal static NdArray<T> Need<T>(NdArray<T> array, string name, Place place)
        {
            if (array == null) throw Fail.With(Status.Argument, name + " is null", place);
            return array;
        }

        /// <summary>An operator between two arrays or numbers.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static NdArray<R> Binary<R, T>(Opcode opcode, NdArray<T> a, NdArray<T> b)
        {
            return Run<R, T>(opcode, 0, null, Place.OfOperator(), a, b);
        }

        /// <summary>An operator on an array.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static NdArray<T> Unary<T>(Opcode opcode, NdArray<T> a)
        {
            return Run<T, T>(opcode, 0, null, Place.OfOperator(), a);
        }

        /// <summary>The negative, as the difference to -0.</summary>
        internal static NdArray<T> Negative<T>(NdArray<T> a, Place place)
        {
            return Run<T, T>(Opcode.Subtract, 0, null, place, Element<T>.NegativeZero, a);
        }

        internal static NdArray<R> Run<R, T>(Opcode opcode, ushort param, NdArray<R> output, Place place, NdArray<T> a)
        {
            Need(a, "the operand", place);
            if (Element<T>.IsComplex && Element<R>.IsComplex && opcode == Opcode.Absolute)
            {
                throw Fail.With(Status.Type, "the modulus of complex numbers is real: use Magnitude", place);
            }
            IntPtr first = a.Handle(place);
            var result = Record(opcode, param, output, place, Element<R>.Type(place), new[] { first });
            GC.KeepAlive(a);
            return result;
        }

        internal static NdArray<R> Run<R, T>(Opcode opcode, ushort param, NdArray<R> output, Place place, NdArray<T> a, NdArray<T> b)
        {
            Need(a, "the left operand", place);
            Need(b, "the right operand", place);
            // An operation on numbers alone has no type but that of an array.
            IntPtr first = b.IsNumber ? a.Handle(place) : a.Operand(place);
            IntPtr second = b.Operand(place);
            var result = Record(opcode, param, output, place, -1, new[] { first, second });
            GC.KeepAlive(a);
            GC.KeepAlive(b);
            return result;
        }

        /// <summary>Records an operation into `output`, or into a new array if that is null.</summary>
        internal static NdArray<R> Record<R>(Opcode opcode, ushort param, NdArray<R> output, Place place, int type, IntPtr[] inputs)
        {
            var count = (UIntPtr)(uint)inputs.Length;
            if (output != null)
            {
                IntPtr written = Writable(output, place);
                place.Note();
                Fail.Check(Native.bh_op(written, (ushort)opcode, param, count, inputs), place);
                GC.KeepAlive(output);
                return output;
            }
            IntPtr made;
            place.Note();
            int status = Native.bh_op_new(out made, (ushort)opcode, param, opcode == Opcode.Copy ? type : -1, count, inputs);
            Fail.Check(status, place);
            return new NdArray<R>(made, true);
        }

        internal static IntPtr Writable<R>(NdArray<R> output, Place place)
        {
            if (output.IsNumber) throw Fail.With(Status.Argument, "a number cannot be written to", place);
            return output.Handle(place);
        }

        internal static NdArray<T> Reduce<T>(Opcode opcode, NdArray<T> a, int axis, NdArray<T> output, Place place)
        {
            ushort axes = axis == Axis.All ? (ushort)((1 << a.Rank) - 1) : Mask(a, axis, place);
            IntPtr input = a.Handle(place);
            // Of an array without dimensions, all axes are none, and the reduction is the element.
            var result = Record(a.Rank == 0 ? Opcode.Copy : opcode, axes, output, place, Element<T>.Type(place), new[] { input });
            GC.KeepAlive(a);
            return result;
        }

        internal static NdArray<T> Accumulate<T>(Opcode opcode, NdArray<T> a, int axis, NdArray<T> output, Place place)
        {
            ushort axes = Mask(a, axis, place);
            var result = Record(opcode, axes, output, place, -1, new[] { a.Handle(place) });
            GC.KeepAlive(a);
            return result;
        }

        private static ushort Mask<T>(NdArray<T> a, int axis, Place place)
        {
            int found = axis < 0 ? axis + a.Rank : axis;
            if (found < 0 || found >= a.Rank)
            {
                throw Fail.With(Status.Argument, "axis " + axis + " of an array of shape " + a.Shape, place);
            }
            return (ushort)(1 << found);
        }

        internal static NdArray<U> Cast<T, U>(NdArray<T> a, Place place)
        {
            Need(a, "the operand", place);
            IntPtr made, from = a.Handle(place);
            int type = Element<U>.Type(place);
            place.Note();
            int status = Native.bh_cast(out made, from, type);
            GC.KeepAlive(a);
            Fail.Check(status, place);
            return new NdArray<U>(made, true);
        }
    }
}
