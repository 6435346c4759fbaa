// Arrays that the program lost: have the garbage collector find them before their elements are computed.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;

namespace Bh
{
    /// <summary>The handle of an array, which is freed once: by the program, by a collection started here, or by a finalizer.</summary>
    internal sealed class Owner
    {
        private readonly long bytes;
        private IntPtr handle;

        /// <summary>`bytes` is the size of the data, if the array is no view.</summary>
        internal Owner(IntPtr handle, long bytes)
        {
            this.handle = handle;
            this.bytes = bytes;
        }

        /// <summary>Zero when it is freed.</summary>
        internal IntPtr Handle => handle;

        internal void Release()
        {
            IntPtr old = Interlocked.Exchange(ref handle, IntPtr.Zero);
            if (old == IntPtr.Zero) return;
            // Fails if the context has ended, which took the array with it.
            Native.bh_free(old);
            Reclaim.Freed(bytes);
        }
    }

    /// <summary>
    /// An array that nobody refers to is freed by its finalizer. The collector does not see how large arrays are, and what it
    /// has not found yet is computed and stored for nothing. So collections are started here: of the youngest objects
    /// before a batch runs and every few operations, of all when what is held has doubled.
    /// </summary>
    public static class Reclaim
    {
        private const long Large = 2L << 20, Huge = 64L << 20, Floor = 256L << 20;
        private const int Few = 32, Many = 400;

        // Each array with its owner. The finalizers' thread would come too late, and waiting for it takes long.
        private static List<KeyValuePair<GCHandle, Owner>> watched = new List<KeyValuePair<GCHandle, Owner>>();
        private static readonly object watching = new object();
        private static long held, fresh, limit = Floor;
        private static int made, collecting;

        /// <summary>Set to false, the collector works on its own; arrays are then best disposed by the program.</summary>
        public static bool Enabled { get; set; } = true;

        /// <summary>Bytes of the arrays that were made and not freed yet, as far as they have data of their own.</summary>
        public static long Held => Interlocked.Read(ref held);

        /// <summary>An array was made.</summary>
        internal static Owner Watch(object array, IntPtr handle, long bytes)
        {
            var owner = new Owner(handle, bytes);
            Interlocked.Add(ref held, bytes);
            if (Temporaries.Take(owner) || !Enabled) return owner;
            long large = Interlocked.Add(ref fresh, bytes);
            int count = Interlocked.Increment(ref made);
            if (count >= Many || (count >= Few && large >= Large) || large >= Huge) Collect(IsFull);
            Leave(array, owner);
            return owner;
        }

        /// <summary>Leaves an array to the garbage collector.</summary>
        internal static void Leave(object array, Owner owner)
        {
            if (!Enabled) return;
            var entry = new KeyValuePair<GCHandle, Owner>(GCHandle.Alloc(array, GCHandleType.Weak), owner);
            lock (watching) watched.Add(entry);
        }

        internal static void Freed(long bytes)
        {
            Interlocked.Add(ref held, -bytes);
        }

        /// <summary>Called before recorded work is run.</summary>
        internal static void BeforeBatch()
        {
            bool isFull = IsFull;
            if (Enabled && (isFull || Interlocked.Read(ref fresh) >= Large)) Collect(isFull);
        }

        /// <summary>Frees all arrays that the program has lost.</summary>
        public static void All() => Collect(true);

        private static bool IsFull => Held > Interlocked.Read(ref limit);

        private static void Collect(bool isFull)
        {
            // A thread that finds another at it goes on with its work.
            if (Interlocked.Exchange(ref collecting, 1) != 0) return;
            try
            {
                Interlocked.Exchange(ref fresh, 0);
                Interlocked.Exchange(ref made, 0);
                if (isFull) GC.Collect();
                else GC.Collect(0);
                FreeLost();
                if (isFull) Interlocked.Exchange(ref limit, Math.Max(Floor, 2 * Held));
            }
            finally
            {
                Interlocked.Exchange(ref collecting, 0);
            }
        }

        private static void FreeLost()
        {
            List<KeyValuePair<GCHandle, Owner>> all;
            lock (watching)
            {
                all = watched;
                watched = new List<KeyValuePair<GCHandle, Owner>>();
            }
            var kept = new List<KeyValuePair<GCHandle, Owner>>();
            foreach (var entry in all)
            {
                bool isLost = entry.Key.Target == null;
                if (!isLost && entry.Value.Handle != IntPtr.Zero)
                {
                    kept.Add(entry);
                    continue;
                }
                entry.Value.Release();
                entry.Key.Free();
            }
            lock (watching) watched.AddRange(kept);
        }
    }
}
