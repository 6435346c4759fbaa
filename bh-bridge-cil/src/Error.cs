// Errors, as an exception that names the line of the program.
using System;
using System.Runtime.InteropServices;
using System.Text;

namespace Bh
{
    /// <summary>An operation that cannot be done, or that failed when it ran. File and Line tell where it was recorded.</summary>
    public sealed class BhException : Exception
    {
        public BhException(Status status, string text, string file, int line)
            : base(string.IsNullOrEmpty(file) ? text : file + ":" + line + ": " + text)
        {
            Status = status;
            Text = text;
            File = file ?? "";
            Line = line;
        }

        public Status Status { get; }

        /// <summary>The message without the place.</summary>
        public string Text { get; }

        /// <summary>File in which the operation was recorded; empty if it is not known.</summary>
        public string File { get; }

        /// <summary>Line at which the operation was recorded; 0 if it is not known.</summary>
        public int Line { get; }
    }

    /// <summary>From statuses to exceptions, and texts to and from C.</summary>
    internal static class Fail
    {
        internal static void Check(int status, Place place = default(Place))
        {
            if (status != 0) throw Last(status, place);
        }

        /// <summary>An exception for what the library said last.</summary>
        internal static BhException Last(int status, Place place)
        {
            string text = Text(Native.bh_error_message()), file = Text(Native.bh_error_file());
            int line = (int)Native.bh_error_line();
            if (text.Length == 0) text = Text(Native.bh_status_text(status));
            return file.Length != 0 ? new BhException((Status)status, text, file, line) : With((Status)status, text, place);
        }

        /// <summary>An exception at a place, or if it is not known, at the line of the program that is running.</summary>
        internal static BhException With(Status status, string text, Place place)
        {
            Place known = place.IsKnown ? place : Place.Search();
            return new BhException(status, text, known.File, known.Line);
        }

        internal static string Text(IntPtr text)
        {
            if (text == IntPtr.Zero) return "";
            int length = 0;
            while (Marshal.ReadByte(text, length) != 0) length++;
            var bytes = new byte[length];
            Marshal.Copy(text, bytes, 0, length);
            return Encoding.UTF8.GetString(bytes);
        }
    }

    /// <summary>A text of C for the time of a call; null stays null.</summary>
    internal struct NativeText : IDisposable
    {
        internal readonly IntPtr Address;

        internal NativeText(string text)
        {
            Address = Place.Unmanaged(text);
        }

        public void Dispose()
        {
            if (Address != IntPtr.Zero) Marshal.FreeHGlobal(Address);
        }
    }
}
