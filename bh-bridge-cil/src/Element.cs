// The properties of each element type: its number, its size, constants of it, and numbers read from it.
using System;
using System.Numerics;

namespace Bh
{
    /// <summary>The element types, by the types of C#.</summary>
    internal static class Elements
    {
        internal sealed class Entry
        {
            internal ElementType Type;
            internal Delegate Constant, Read;
            internal object NegativeZero;
        }

        internal static Entry Find(Type type)
        {
            if (type == typeof(bool)) return Make(ElementType.Bool, false, Native.bh_bool, Truth);
            if (type == typeof(sbyte)) return Make(ElementType.I8, (sbyte)0, Native.bh_i8, (a, at) => (sbyte)Signed(a, at));
            if (type == typeof(short)) return Make(ElementType.I16, (short)0, Native.bh_i16, (a, at) => (short)Signed(a, at));
            if (type == typeof(int)) return Make(ElementType.I32, 0, Native.bh_i32, (a, at) => (int)Signed(a, at));
            if (type == typeof(long)) return Make(ElementType.I64, 0L, Native.bh_i64, Signed);
            if (type == typeof(byte)) return Make(ElementType.U8, (byte)0, Native.bh_u8, (a, at) => (byte)Unsigned(a, at));
            if (type == typeof(ushort)) return Make(ElementType.U16, (ushort)0, Native.bh_u16, (a, at) => (ushort)Unsigned(a, at));
            if (type == typeof(uint)) return Make(ElementType.U32, 0u, Native.bh_u32, (a, at) => (uint)Unsigned(a, at));
            if (type == typeof(ulong)) return Make(ElementType.U64, 0ul, Native.bh_u64, Unsigned);
            if (type == typeof(float)) return Make(ElementType.F32, -0f, Native.bh_f32, (a, at) => (float)Real(a, at));
            if (type == typeof(double)) return Make(ElementType.F64, -0.0, Native.bh_f64, Real);
            if (type == typeof(Complex))
            {
                return Make(ElementType.C128, new Complex(-0.0, -0.0), value => Native.bh_c128(value.Real, value.Imaginary), Pair);
            }
            return null;
        }

        private static Entry Make<U>(ElementType type, U negativeZero, Func<U, IntPtr> constant, Func<IntPtr, Place, U> read)
        {
            return new Entry { Type = type, NegativeZero = negativeZero, Constant = constant, Read = read };
        }

        private static bool Truth(IntPtr array, Place place)
        {
            bool value;
            Fail.Check(Native.bh_scalar_bool(out value, array), place);
            return value;
        }

        private static long Signed(IntPtr array, Place place)
        {
            long value;
            Fail.Check(Native.bh_scalar_i64(out value, array), place);
            return value;
        }

        private static ulong Unsigned(IntPtr array, Place place)
        {
            ulong value;
            Fail.Check(Native.bh_scalar_u64(out value, array), place);
            return value;
        }

        private static double Real(IntPtr array, Place place)
        {
            double value;
            Fail.Check(Native.bh_scalar_f64(out value, array), place);
            return value;
        }

        private static Complex Pair(IntPtr array, Place place)
        {
            var value = new double[2];
            Fail.Check(Native.bh_scalar_c128(value, array), place);
            return new Complex(value[0], value[1]);
        }
    }

    internal static class Element<T>
    {
        private static readonly Elements.Entry Entry = Elements.Find(typeof(T));

        /// <summary>A constant as an operand of the call that follows.</summary>
        internal static readonly Func<T, IntPtr> Constant = (Func<T, IntPtr>)Entry?.Constant;

        /// <summary>The one element of an array.</summary>
        internal static readonly Func<IntPtr, Place, T> Read = (Func<IntPtr, Place, T>)Entry?.Read;

        internal static readonly int Size = Entry == null ? 0 : (int)(ulong)Native.bh_dtype_size((int)Entry.Type);

        /// <summary>What a number is subtracted from to give its negative: -0, which keeps the sign of zeros right.</summary>
        internal static readonly T NegativeZero = Entry == null ? default(T) : (T)Entry.NegativeZero;

        internal static readonly bool IsComplex = typeof(T) == typeof(Complex);

        /// <summary>The number of the type; an exception if arrays of it are impossible.</summary>
        internal static int Type(Place place)
        {
            if (Entry != null) return (int)Entry.Type;
            throw Fail.With(Status.Type, "arrays of " + typeof(T).Name + " are not possible", place);
        }
    }
}
