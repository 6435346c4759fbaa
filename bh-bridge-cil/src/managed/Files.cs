// Files in NumPy's format, and arrays as text.
using System;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Text;
using System.Text.RegularExpressions;

namespace Bh.Managed
{
    internal static unsafe class Files
    {
        private static readonly string[] Codes = { "|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8", "<c8", "<c16" };

        internal static void Save(string path, View array)
        {
            string header = "{'descr': '" + Codes[(int)array.Type] + "', 'fortran_order': False, 'shape': " + View.Show(array.Shape) + ", }";
            header = header.PadRight((header.Length + 11 + 63) / 64 * 64 - 11) + "\n";
            View packed = View.New(array.Type, array.Shape);
            try
            {
                Operations.Run(Opcode.Copy, 0, packed, new[] { array });
                using (var file = File.Create(path))
                {
                    file.Write(new byte[] { 0x93, 78, 85, 77, 80, 89, 1, 0, (byte)header.Length, (byte)(header.Length >> 8) }, 0, 10);
                    file.Write(Encoding.ASCII.GetBytes(header), 0, header.Length);
                    using (var memory = new UnmanagedMemoryStream(packed.Block.Start, packed.Length * Types.Size(packed.Type))) memory.CopyTo(file);
                }
            }
            catch (Exception error) when (error is IOException || error is UnauthorizedAccessException)
            {
                throw new Failure(Status.File, "the file '" + path + "' cannot be written: " + error.Message);
            }
            finally
            {
                packed.Block.Release();
            }
        }

        internal static View Load(string path)
        {
            try
            {
                using (var file = File.OpenRead(path)) return Read(path, file);
            }
            catch (Exception error) when (error is IOException || error is UnauthorizedAccessException)
            {
                throw new Failure(Status.File, "the file '" + path + "' cannot be read: " + error.Message);
            }
        }

        private static View Read(string path, Stream file)
        {
            var begin = new byte[10];
            if (file.Read(begin, 0, 10) != 10 || begin[0] != 0x93 || begin[6] > 3) throw Strange(path);
            int length = begin[8] | begin[9] << 8;
            if (begin[6] > 1) length |= file.ReadByte() << 16 | file.ReadByte() << 24;
            if (length < 0 || length > 1 << 20) throw Strange(path);
            var bytes = new byte[length];
            if (file.Read(bytes, 0, length) != length) throw Strange(path);
            string header = Encoding.UTF8.GetString(bytes);
            Match type = Regex.Match(header, "'descr': *'([^']*)'"), order = Regex.Match(header, "'fortran_order': *(True|False)");
            Match extents = Regex.Match(header, @"'shape': *\(([^)]*)\)");
            int known = Array.IndexOf(Codes, type.Groups[1].Value);
            if (!order.Success || !extents.Success || known < 0 || known == (int)ElementType.C64) throw Strange(path);
            var shape = extents.Groups[1].Value.Split(',').Where(part => part.Trim() != "").Select(long.Parse).ToArray();
            bool isTurned = order.Groups[1].Value == "True";
            View made = View.New((ElementType)known, isTurned ? shape.Reverse().ToArray() : shape);
            long size = made.Length * Types.Size(made.Type);
            if (file.Length - file.Position < size) throw Strange(path);
            using (var memory = new UnmanagedMemoryStream(made.Block.Start, 0, size, FileAccess.Write)) CopyTo(file, memory, size);
            return isTurned ? made.With(0, shape, made.Stride.Reverse().ToArray()) : made;
        }

        private static void CopyTo(Stream from, Stream to, long bytes)
        {
            var some = new byte[1 << 16];
            while (bytes > 0)
            {
                int count = from.Read(some, 0, (int)Math.Min(some.Length, bytes));
                if (count == 0) throw new EndOfStreamException("it ends too early");
                to.Write(some, 0, count);
                bytes -= count;
            }
        }

        private static Failure Strange(string path) => new Failure(Status.File, "the file '" + path + "' is not in NumPy's format, or of a type that bh lacks");

        private const long Edge = 3, Largest = 1000;

        /// <summary>The elements in brackets, large arrays by their edges, in columns.</summary>
        internal static string Text(View array)
        {
            if (array.Rank == 0) return Element(Buffer.Of(array), array.Type, 0);
            bool isShort = array.Length > Largest;
            int before = 0, behind = 0;
            string found = Rows(array, isShort, 0, element =>
            {
                int point = Point(element);
                before = Math.Max(before, point);
                behind = Math.Max(behind, element.Length - point);
                return element;
            });
            if (before == 0) return found;
            return Rows(array, isShort, 0, element =>
            {
                int point = Point(element);
                return new string(' ', before - point) + element + new string(' ', behind - (element.Length - point));
            });
        }

        /// <summary>Where the decimal point stands, or the end.</summary>
        private static int Point(string element) => element.Contains(".") && !element.Contains("j") ? element.IndexOf('.') : element.Length;

        private static string Rows(View array, bool isShort, int depth, Func<string, string> shown)
        {
            if (array.Rank == 0) return shown(Element(Buffer.Of(array), array.Type, 0));
            long extent = array.Shape[0];
            var parts = Enumerable.Range(0, (int)Math.Min(extent, isShort ? 2 * Edge + 1 : extent)).Select(at =>
            {
                if (isShort && extent > 2 * Edge && at == Edge) return "...";
                long index = isShort && extent > 2 * Edge && at > Edge ? extent - (2 * Edge + 1 - at) : at;
                View row = array.With(array.Start + index * array.Stride[0], array.Shape.Skip(1).ToArray(), array.Stride.Skip(1).ToArray());
                return Rows(row, isShort, depth + 1, shown);
            });
            string between = array.Rank == 1 ? " " : new string('\n', array.Rank - 1) + new string(' ', depth + 1);
            return "[" + string.Join(between, parts) + "]";
        }

        private static string Element(Buffer buffer, ElementType type, int at)
        {
            if (type == ElementType.Bool) return buffer.Wholes[at] != 0 ? "True" : "False";
            if (type == ElementType.U64) return unchecked((ulong)buffer.Wholes[at]).ToString(CultureInfo.InvariantCulture);
            if (buffer.Kind == Kind.Whole) return buffer.Wholes[at].ToString(CultureInfo.InvariantCulture);
            if (buffer.Kind == Kind.Real) return Number(buffer.Reals[at], type);
            string imaginary = Number(buffer.Pairs[at].Imaginary, ElementType.F64);
            return Number(buffer.Pairs[at].Real, ElementType.F64) + (imaginary.StartsWith("-") ? "" : "+") + imaginary + "j";
        }

        private static string Number(double value, ElementType type)
        {
            if (double.IsNaN(value) || double.IsInfinity(value)) return double.IsNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
            string text = type == ElementType.F32 ? ((float)value).ToString("R", CultureInfo.InvariantCulture) : value.ToString("R", CultureInfo.InvariantCulture);
            return text.Contains(".") || text.Contains("E") ? text : text + ".";
        }
    }
}
