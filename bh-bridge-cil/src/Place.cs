// Lines of the program, which errors name.
using System;
using System.Collections.Concurrent;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;

namespace Bh
{
    /// <summary>Whether operators look up the line that they stand in.</summary>
    public static class Places
    {
        private static volatile bool operators = Environment.GetEnvironmentVariable("BH_PLACES") != "off";

        /// <summary>
        /// Methods know their line from the compiler; operators and subscripts look for it on the stack, which takes some
        /// microseconds each. Without debugging symbols there are no lines, and the search ends by itself. BH_PLACES=off in
        /// the environment turns it off.
        /// </summary>
        public static bool Operators
        {
            get { return operators; }
            set { operators = value; }
        }
    }

    internal struct Place
    {
        private static readonly ConcurrentDictionary<string, IntPtr> Files = new ConcurrentDictionary<string, IntPtr>();

        internal readonly string File;
        internal readonly int Line;

        internal Place(string file, int line)
        {
            File = file;
            Line = line;
        }

        internal bool IsKnown => !string.IsNullOrEmpty(File);

        /// <summary>Notes the place for the next call of this thread.</summary>
        internal void Note()
        {
            // The names of the program's files are few, and are kept: the library reads them in later calls.
            Native.bh_at(IsKnown ? Files.GetOrAdd(File, Unmanaged) : IntPtr.Zero, (uint)Math.Max(0, Line));
        }

        /// <summary>The line of the operator that runs, if operators look for it.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static Place OfOperator()
        {
            if (!Places.Operators) return default(Place);
            Place found = Search();
            if (!found.IsKnown) Places.Operators = false;
            return found;
        }

        /// <summary>The innermost line that is not of this library.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static Place Search()
        {
            for (int depth = 1; depth < 16; depth++)
            {
                var method = new StackFrame(depth, false).GetMethod();
                if (method == null) break;
                if (method.Module == typeof(Place).Module) continue;
                var frame = new StackFrame(depth, true);
                string file = frame.GetFileName();
                return new Place(file, file == null ? 0 : frame.GetFileLineNumber());
            }
            return default(Place);
        }

        internal static IntPtr Unmanaged(string text)
        {
            if (text == null) return IntPtr.Zero;
            byte[] bytes = Encoding.UTF8.GetBytes(text);
            IntPtr memory = Marshal.AllocHGlobal(bytes.Length + 1);
            Marshal.Copy(bytes, 0, memory, bytes.Length);
            Marshal.WriteByte(memory, bytes.Length, 0);
            return memory;
        }
    }
}
