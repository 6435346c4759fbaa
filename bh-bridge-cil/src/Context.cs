// Stacks of components and what they tell.
using System;

namespace Bh
{
    /// <summary>A stack of components and the arrays made in it. Unless a program says otherwise, it uses the default one.</summary>
    public sealed class Context : IDisposable
    {
        [ThreadStatic]
        private static Context current;

        private readonly bool isDefault;
        private IntPtr handle;
        private bool isGone;

        private Context(bool isDefault)
        {
            this.isDefault = isDefault;
        }

        /// <summary>A context on a stack of the configuration; on the one that the user picked if none is named.</summary>
        public Context(string stack = null)
        {
            using (var text = new NativeText(stack)) Fail.Check(Native.bh_context_create(out handle, text.Address));
        }

        public static readonly Context Default = new Context(true);

        /// <summary>Where this thread makes arrays.</summary>
        public static Context Current => current ?? Default;

        /// <summary>This thread makes arrays here until the result is disposed.</summary>
        public IDisposable Use()
        {
            var scope = new Scope(current);
            current = this;
            return scope;
        }

        internal IntPtr Handle
        {
            get
            {
                if (isGone) throw Fail.With(Status.Handle, "the context is disposed", default(Place));
                return handle;
            }
        }

        /// <summary>Hands everything recorded to the engine.</summary>
        public void Flush()
        {
            Reclaim.BeforeBatch();
            Fail.Check(Native.bh_flush(Handle));
        }

        /// <summary>Waits until everything recorded is done.</summary>
        public void Sync()
        {
            Reclaim.BeforeBatch();
            Fail.Check(Native.bh_sync(Handle));
        }

        public string StackName
        {
            get
            {
                IntPtr text;
                Fail.Check(Native.bh_stack_name(out text, Handle));
                return Fail.Text(text);
            }
        }

        /// <summary>The stack and its components with their versions.</summary>
        public string Info
        {
            get
            {
                IntPtr text;
                Fail.Check(Native.bh_info(out text, Handle));
                return Fail.Text(text);
            }
        }

        public Statistics Statistics
        {
            get
            {
                Statistics statistics;
                Fail.Check(Native.bh_statistics_get(out statistics, Handle));
                return statistics;
            }
        }

        public Memory Memory
        {
            get
            {
                Memory memory;
                Fail.Check(Native.bh_memory_get(out memory, Handle));
                return memory;
            }
        }

        public ulong Counter(string name)
        {
            ulong value;
            using (var text = new NativeText(name)) Fail.Check(Native.bh_counter(out value, Handle, text.Address));
            return value;
        }

        public int Threads
        {
            get
            {
                int threads;
                Fail.Check(Native.bh_threads_get(out threads, Handle));
                return threads;
            }
            set { Fail.Check(Native.bh_threads_set(Handle, value)); }
        }

        /// <summary>Makes each operation complete before it returns.</summary>
        public void Eager(bool isEager) => Fail.Check(Native.bh_eager(Handle, isEager ? 1 : 0));

        /// <summary>
        /// Finishes all work and ends the context with its arrays, whose later use is an error, and whose finalizers may come
        /// when they like. The default context comes back when it is used again.
        /// </summary>
        public void Dispose()
        {
            if (isGone) return;
            isGone = !isDefault;
            Fail.Check(Native.bh_context_destroy(handle));
        }

        private sealed class Scope : IDisposable
        {
            private readonly Context before;

            internal Scope(Context before)
            {
                this.before = before;
            }

            public void Dispose() => current = before;
        }
    }
}
