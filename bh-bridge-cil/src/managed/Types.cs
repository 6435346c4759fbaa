// Element types of the managed engine: elements come from memory into one of three kinds of buffers, and go back.
using System;
using System.Numerics;

namespace Bh.Managed
{
    /// <summary>What elements are computed as.</summary>
    internal enum Kind { Whole, Real, Complex }

    internal static class Types
    {
        internal static int Size(ElementType type)
        {
            switch (type)
            {
                case ElementType.Bool: case ElementType.I8: case ElementType.U8: return 1;
                case ElementType.I16: case ElementType.U16: return 2;
                case ElementType.I32: case ElementType.U32: case ElementType.F32: return 4;
                case ElementType.C128: return 16;
                default: return 8;
            }
        }

        internal static Kind KindOf(ElementType type) =>
            type <= ElementType.U64 ? Kind.Whole : type <= ElementType.F64 ? Kind.Real : Kind.Complex;

        internal static bool IsInteger(ElementType type) => type >= ElementType.I8 && type <= ElementType.U64;

        internal static string Name(ElementType type) => type.ToString().ToLowerInvariant();

        internal static ElementType Known(int type)
        {
            if (type >= 0 && type <= (int)ElementType.C128 && type != (int)ElementType.C64) return (ElementType)type;
            throw new Failure(Status.Type, "the managed engine has no element type " + type);
        }
    }

    /// <summary>Some elements, as numbers of one kind. Whole numbers are the bits of 64; which type they have is known beside.</summary>
    internal sealed unsafe class Buffer
    {
        internal readonly Kind Kind;
        internal readonly long[] Wholes;
        internal readonly double[] Reals;
        internal readonly Complex[] Pairs;

        internal Buffer(Kind kind, int size = Walk.Most)
        {
            Kind = kind;
            if (kind == Kind.Whole) Wholes = new long[size];
            else if (kind == Kind.Real) Reals = new double[size];
            else Pairs = new Complex[size];
        }

        /// <summary>A buffer with all elements of a view.</summary>
        internal static Buffer Of(View view)
        {
            if (view.Length > int.MaxValue) throw new Failure(Status.Unsupported, "the managed engine does this for less than 2³¹ elements only");
            var buffer = new Buffer(Types.KindOf(view.Type), (int)view.Length);
            int at = 0;
            Walk.Runs(view.Shape, new[] { view }, (starts, strides, count) =>
            {
                buffer.Load(view, starts[0], strides[0], count, at);
                at += count;
            });
            return buffer;
        }

        /// <summary>Overwrites all elements of a view.</summary>
        internal void To(View view)
        {
            int at = 0;
            Walk.Runs(view.Shape, new[] { view }, (starts, strides, count) =>
            {
                Store(view, starts[0], strides[0], count, at);
                at += count;
            });
        }

        /// <summary>Takes elements of a view.</summary>
        internal void Load(View view, long start, long stride, int count, int at = 0)
        {
            byte* memory = view.Block.Start;
            switch (view.Type)
            {
                case ElementType.Bool: case ElementType.U8: for (int i = 0; i < count; i++) Wholes[at + i] = memory[start + i * stride]; break;
                case ElementType.I8: for (int i = 0; i < count; i++) Wholes[at + i] = ((sbyte*)memory)[start + i * stride]; break;
                case ElementType.I16: for (int i = 0; i < count; i++) Wholes[at + i] = ((short*)memory)[start + i * stride]; break;
                case ElementType.U16: for (int i = 0; i < count; i++) Wholes[at + i] = ((ushort*)memory)[start + i * stride]; break;
                case ElementType.I32: for (int i = 0; i < count; i++) Wholes[at + i] = ((int*)memory)[start + i * stride]; break;
                case ElementType.U32: for (int i = 0; i < count; i++) Wholes[at + i] = ((uint*)memory)[start + i * stride]; break;
                case ElementType.I64: case ElementType.U64: for (int i = 0; i < count; i++) Wholes[at + i] = ((long*)memory)[start + i * stride]; break;
                case ElementType.F32: for (int i = 0; i < count; i++) Reals[at + i] = ((float*)memory)[start + i * stride]; break;
                case ElementType.F64: for (int i = 0; i < count; i++) Reals[at + i] = ((double*)memory)[start + i * stride]; break;
                default: for (int i = 0; i < count; i++) Pairs[at + i] = ((Complex*)memory)[start + i * stride]; break;
            }
        }

        /// <summary>Gives elements to a view of the buffer's kind. Whole numbers keep their last bits; truth values are what is not 0.</summary>
        internal void Store(View view, long start, long stride, int count, int at = 0)
        {
            byte* memory = view.Block.Start;
            switch (view.Type)
            {
                case ElementType.Bool: for (int i = 0; i < count; i++) memory[start + i * stride] = Wholes[at + i] != 0 ? (byte)1 : (byte)0; break;
                case ElementType.I8: case ElementType.U8: for (int i = 0; i < count; i++) memory[start + i * stride] = unchecked((byte)Wholes[at + i]); break;
                case ElementType.I16: case ElementType.U16: for (int i = 0; i < count; i++) ((ushort*)memory)[start + i * stride] = unchecked((ushort)Wholes[at + i]); break;
                case ElementType.I32: case ElementType.U32: for (int i = 0; i < count; i++) ((uint*)memory)[start + i * stride] = unchecked((uint)Wholes[at + i]); break;
                case ElementType.I64: case ElementType.U64: for (int i = 0; i < count; i++) ((long*)memory)[start + i * stride] = Wholes[at + i]; break;
                case ElementType.F32: for (int i = 0; i < count; i++) ((float*)memory)[start + i * stride] = (float)Reals[at + i]; break;
                case ElementType.F64: for (int i = 0; i < count; i++) ((double*)memory)[start + i * stride] = Reals[at + i]; break;
                default: for (int i = 0; i < count; i++) ((Complex*)memory)[start + i * stride] = Pairs[at + i]; break;
            }
        }

        /// <summary>The elements converted from a type to another, into a buffer of its kind.</summary>
        internal void Convert(ElementType from, ElementType to, Buffer result, int count)
        {
            bool isUnsigned = from == ElementType.U64, isBool = to == ElementType.Bool;
            for (int i = 0; i < count; i++)
            {
                switch (Kind)
                {
                    case Kind.Whole:
                        double real = isUnsigned ? (double)unchecked((ulong)Wholes[i]) : Wholes[i];
                        if (result.Kind == Kind.Whole) result.Wholes[i] = Wholes[i];
                        else if (result.Kind == Kind.Real) result.Reals[i] = real;
                        else result.Pairs[i] = real;
                        break;
                    case Kind.Real:
                        if (result.Kind == Kind.Whole) result.Wholes[i] = isBool ? Reals[i] != 0 ? 1 : 0 : Cut(Reals[i], to);
                        else if (result.Kind == Kind.Real) result.Reals[i] = Reals[i];
                        else result.Pairs[i] = Reals[i];
                        break;
                    default:
                        if (result.Kind == Kind.Whole) result.Wholes[i] = Pairs[i] != Complex.Zero ? 1 : 0;
                        else result.Pairs[i] = Pairs[i];
                        break;
                }
            }
        }

        /// <summary>A number without its fraction, as x86-64 converts it: of numbers beyond 32 bits (64 for U32 and wider types) and of NaN,
        /// the smallest whole number; the type keeps its lowest bits.</summary>
        private static long Cut(double value, ElementType to)
        {
            const double Half = 9223372036854775808.0;
            if (to == ElementType.U64 && value >= Half) return value < 2 * Half ? unchecked((long)(ulong)value) : 0;
            bool isWide = Types.Size(to) == 8 || to == ElementType.U32;
            double limit = isWide ? Half : 2147483648.0;
            long whole = value >= -limit && value < limit ? (long)value : isWide ? long.MinValue : int.MinValue;
            switch (to)
            {
                case ElementType.I8: return unchecked((sbyte)whole);
                case ElementType.U8: return unchecked((byte)whole);
                case ElementType.I16: return unchecked((short)whole);
                case ElementType.U16: return unchecked((ushort)whole);
                case ElementType.U32: return unchecked((uint)whole);
                default: return whole;
            }
        }
    }
}
