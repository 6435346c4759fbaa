// Arrays that end with a block of the program.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;

namespace Bh
{
    /// <summary>
    /// Frees the arrays that its thread makes while it lives, but those that are kept:
    /// `using (var temporaries = new Temporaries()) { … last = temporaries.Keep(a + b); }`. The garbage collector has nothing to
    /// look for then, and memory is used again soon. The use of a freed array is an exception.
    /// </summary>
    public sealed class Temporaries : IDisposable
    {
        [ThreadStatic]
        private static Temporaries current;

        private readonly Temporaries outer = current;
        private readonly List<Owner> owners = new List<Owner>();
        private bool isOver;

        public Temporaries()
        {
            current = this;
        }

        /// <summary>An array that stays; it belongs to the block around this one, if there is one.</summary>
        public NdArray<T> Keep<T>(NdArray<T> array, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
        {
            var place = new Place(file, line);
            var owner = Operation.Need(array, "the array", place).Owner;
            if (isOver) throw Fail.With(Status.Argument, "the block of temporaries is over", place);
            int found = owners.LastIndexOf(owner);
            if (found < 0) return array;
            owners.RemoveAt(found);
            if (outer != null) outer.owners.Add(owner);
            else Reclaim.Leave(array, owner);
            return array;
        }

        internal static bool Take(Owner owner)
        {
            if (current == null) return false;
            current.owners.Add(owner);
            return true;
        }

        public void Dispose()
        {
            if (isOver) return;
            isOver = true;
            if (current == this) current = outer;
            foreach (var owner in owners) owner.Release();
            owners.Clear();
        }
    }
}
