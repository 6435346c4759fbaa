// Arrays that the program lost: have the garbage collector find them before their elements are computed.
using System;
using System.Threading;

namespace Bh
{
    /// <summary>
    /// An array that nobody refers to is freed by its finalizer. The collector does not see how large arrays are, and what it
    /// has not found yet is computed and stored for nothing. So collections are started here: of the youngest objects
    /// before a batch runs, of all when what is held has doubled.
    /// </summary>
    public static class Reclaim
    {
        private const long Fresh = 1L << 20, Floor = 64L << 20;
        private const int Count = 400;

        private static long held, fresh, limit = Floor;
        private static int made;
        private static int collecting;

        [ThreadStatic]
        private static bool isFinalizer;

        /// <summary>Set to false, the collector works on its own; arrays are then best disposed by the program.</summary>
        public static bool Enabled { get; set; } = true;

        /// <summary>Bytes of the arrays that were made and not freed yet, as far as they have data of their own.</summary>
        public static long Held => Interlocked.Read(ref held);

        internal static void Made(long bytes)
        {
            Interlocked.Add(ref held, bytes);
            Interlocked.Add(ref fresh, bytes);
            // The recorder hands a batch over when it is long: what is lost by then should be gone.
            if (Interlocked.Increment(ref made) >= Count) BeforeBatch();
        }

        internal static void Freed(long bytes)
        {
            Interlocked.Add(ref held, -bytes);
        }

        internal static void InFinalizer()
        {
            isFinalizer = true;
        }

        /// <summary>Called before recorded work is run.</summary>
        internal static void BeforeBatch()
        {
            bool isFull = Held > Interlocked.Read(ref limit);
            if (!Enabled || isFinalizer || (!isFull && Interlocked.Read(ref fresh) < Fresh)) return;
            Collect(isFull);
        }

        /// <summary>Frees all arrays that the program has lost.</summary>
        public static void All() => Collect(true);

        private static void Collect(bool isFull)
        {
            // A thread that finds another at it goes on with its work.
            if (isFinalizer || Interlocked.Exchange(ref collecting, 1) != 0) return;
            try
            {
                Interlocked.Exchange(ref fresh, 0);
                Interlocked.Exchange(ref made, 0);
                if (isFull) GC.Collect();
                else GC.Collect(0);
                GC.WaitForPendingFinalizers();
                if (isFull) Interlocked.Exchange(ref limit, Math.Max(Floor, 2 * Held));
            }
            finally
            {
                Interlocked.Exchange(ref collecting, 0);
            }
        }
    }
}
