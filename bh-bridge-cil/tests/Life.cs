// The life of arrays: finalizers that come late, on their own thread, under load and after the context.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using Bh;
using R = Bh.Range;

static class Life
{
    internal static void All()
    {
        Temporaries();
        Threads();
        Contexts();
        Lost();
        Held();
        Blocks();
    }

    /// <summary>100,000 temporaries, whose finalizers run while others are made.</summary>
    private static void Temporaries()
    {
        var a = Create.Zeros<double>(16);
        for (int i = 0; i < 50000; i++)
        {
            a = a + 1;
            var lost = a[R.Slice(1, -1)];
            if (i % 10000 == 0) GC.Collect();
        }
        Program.Check(a.Sum() == 16 * 50000, "100,000 temporaries");
        Collected();
        Program.Check(Context.Default.Statistics.Arrays < 2000, "temporaries are freed: " + Context.Default.Statistics.Arrays);
    }

    private static void Threads()
    {
        var wrong = 0;
        var threads = Enumerable.Range(0, 4).Select(number => new Thread(() =>
        {
            var a = Create.Full((double)number, 100);
            for (int i = 0; i < 1000; i++) a = a * 1.0 + 1.0;
            if (a.Sum() != 100 * (number + 1000)) Interlocked.Increment(ref wrong);
        })).ToList();
        threads.ForEach(thread => thread.Start());
        threads.ForEach(thread => thread.Join());
        Program.Check(wrong == 0, "threads");
    }

    /// <summary>Arrays outlive their context, and are finalized when others live in its place.</summary>
    private static void Contexts()
    {
        for (int turn = 0; turn < 3; turn++)
        {
            var old = Orphans();
            using (var context = new Context())
            using (context.Use())
            {
                var a = Create.Ones<double>(10);
                Program.Check(!old.Any(array => Works(array)), "arrays of a context that ended");
                old = null;
                Collected();
                Program.Check(a.Sum() == 10, "a context beside the dead");
            }
        }
        Program.Check(Create.Ones<double>(3).Sum() == 3, "the default context");
    }

    private static bool Works(NdArray<double> array)
    {
        try
        {
            array.Sum();
            return true;
        }
        catch (BhException)
        {
            return false;
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static List<NdArray<double>> Orphans()
    {
        using (var context = new Context())
        using (context.Use())
        {
            return Enumerable.Range(0, 100).Select(i => Create.Ones<double>(10) + i).ToList();
        }
    }

    /// <summary>A temporary that was lost before the batch ran needs no memory.</summary>
    private static void Lost()
    {
        Reclaim.All();
        Context.Default.Sync();
        const int count = 1 << 20;
        var a = Create.Ones<double>(count);
        Context.Default.Sync();
        for (int i = 0; i < 20; i++)
        {
            Program.Check(Steps(a) == 41.0 * count, "a chain of temporaries");
        }
        ulong used = Context.Default.Memory.Peak;
        Program.Check(used < 1000ul << 20, "memory of lost arrays: " + (used >> 20) + " MiB");
    }

    private static double Steps(NdArray<double> a)
    {
        var b = a;
        for (int i = 0; i < 40; i++) b = b + 1;
        return b.Sum();
    }

    private static void Held()
    {
        Collected();
        long before = Reclaim.Held;
        using (var a = Create.Zeros<double>(1000))
        using (var view = a[R.Slice(0, 10)])
        {
            Program.Check(Reclaim.Held - before == 8000, "bytes held");
            view.Dispose();
            view.Dispose();
            Program.Check(view.IsDisposed && !a.IsDisposed, "disposed twice");
        }
        Program.Check(Reclaim.Held == before, "bytes given back");
        NdArray<double> number = 3;
        number.Dispose();
        Program.Check(number.Take() == 3, "numbers need no disposal");
    }

    private static void Blocks()
    {
        NdArray<double> kept, lost, inner;
        var a = Create.Ones<double>(4);
        using (var temporaries = new Temporaries())
        {
            lost = a + 1;
            using (var within = new Temporaries()) inner = within.Keep(lost + 1);
            Program.Check(inner.Sum() == 12, "kept by the inner block");
            kept = temporaries.Keep(inner + a);
            a[R.Slice(1)] = kept[R.Slice(1)];
        }
        Program.Check(lost.IsDisposed && inner.IsDisposed && !kept.IsDisposed, "what a block frees");
        Program.Equal(kept, 4, 4, 4, 4);
        Program.Equal(a, 1, 4, 4, 4);
        using (var temporaries = new Temporaries()) Program.Check(ReferenceEquals(temporaries.Keep(a), a), "keeping what is older");
    }

    private static void Collected()
    {
        for (int i = 0; i < 2; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
    }
}
