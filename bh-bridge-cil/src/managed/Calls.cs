// The functions of bh.h that the library uses, on the managed engine: operations are carried out as they come, one at a time.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Numerics;
using System.Runtime.InteropServices;

namespace Bh.Managed
{
    internal static unsafe class Calls
    {
        private sealed class Entry
        {
            internal View View;
            internal long Context;
        }

        /// <summary>What a thread is told and tells.</summary>
        private sealed class Told
        {
            internal IntPtr File, ErrorFile, Message, Text;
            internal uint Line, ErrorLine;
            internal readonly View[] Constants = new View[16];
            internal int Next;
        }

        private const string Name = "managed";
        private static readonly object Gate = new object();
        private static readonly Dictionary<long, Entry> Arrays = new Dictionary<long, Entry>();
        private static readonly HashSet<long> Contexts = new HashSet<long> { 0 };
        private static readonly Dictionary<int, IntPtr> StatusTexts = new Dictionary<int, IntPtr>();
        private static long last, operations;

        [ThreadStatic]
        private static Told told;

        private static Told Mine => told ?? (told = new Told());

        /// <summary>Carries a call out; what fails is kept for this thread, with the line that was noted for the call.</summary>
        private static int Try(Action act)
        {
            Told mine = Mine;
            IntPtr file = mine.File;
            uint line = mine.Line;
            mine.File = IntPtr.Zero;
            mine.Line = 0;
            lock (Gate)
            {
                try
                {
                    act();
                    return (int)Status.Ok;
                }
                catch (Failure failure)
                {
                    Replace(ref mine.Message, failure.Message);
                    mine.ErrorFile = file;
                    mine.ErrorLine = line;
                    return (int)failure.Status;
                }
            }
        }

        private static void Replace(ref IntPtr text, string value)
        {
            if (text != IntPtr.Zero) Marshal.FreeHGlobal(text);
            text = Place.Unmanaged(value);
        }

        private static int Tell(out IntPtr result, IntPtr context, Func<string> text)
        {
            int status = Try(() =>
            {
                Known(context);
                Replace(ref Mine.Text, text());
            });
            result = status == 0 ? Mine.Text : IntPtr.Zero;
            return status;
        }

        private static long Known(IntPtr context)
        {
            if (Contexts.Contains((long)context)) return (long)context;
            throw new Failure(Status.Handle, "the context has ended");
        }

        private static Entry Find(IntPtr array)
        {
            long handle = (long)array;
            if (handle < 0 && -1 - handle < Mine.Constants.Length) return new Entry { View = Mine.Constants[-1 - handle], Context = -1 };
            if (Arrays.TryGetValue(handle, out Entry found)) return found;
            throw new Failure(Status.Handle, "the array is freed, or its context has ended");
        }

        private static View ViewOf(IntPtr array) => Find(array).View;

        private static View Writable(IntPtr array)
        {
            View view = ViewOf(array);
            if (view.IsStretched) throw new Failure(Status.Argument, "a stretched array cannot be written to");
            return view;
        }

        private static IntPtr Add(View view, long context)
        {
            view.Block.Retain();
            Arrays.Add(++last, new Entry { View = view, Context = context });
            return (IntPtr)last;
        }

        /// <summary>A new array in a context.</summary>
        private static int Make(out IntPtr result, IntPtr context, Func<View> make)
        {
            IntPtr made = IntPtr.Zero;
            int status = Try(() =>
            {
                long known = Known(context);
                made = Add(make(), known);
            });
            result = made;
            return status;
        }

        /// <summary>A new array beside another one.</summary>
        private static int Derive(out IntPtr result, IntPtr array, Func<View, View> make)
        {
            IntPtr made = IntPtr.Zero;
            int status = Try(() =>
            {
                Entry found = Find(array);
                made = Add(make(found.View), found.Context);
            });
            result = made;
            return status;
        }

        private static View Made(int type, long[] shape, Action<View> fill = null)
        {
            View made = View.New(Types.Known(type), shape ?? new long[0]);
            fill?.Invoke(made);
            return made;
        }

        private static View Single(ElementType type, Complex value, long whole = 0)
        {
            View made = View.New(type);
            var buffer = new Buffer(Types.KindOf(type), 1);
            if (buffer.Kind == Kind.Whole) buffer.Wholes[0] = whole;
            else if (buffer.Kind == Kind.Real) buffer.Reals[0] = value.Real;
            else buffer.Pairs[0] = value;
            buffer.To(made);
            return made;
        }

        private static IntPtr Constant(ElementType type, Complex value, long whole = 0)
        {
            lock (Gate)
            {
                Told mine = Mine;
                mine.Next = (mine.Next + 1) % mine.Constants.Length;
                mine.Constants[mine.Next]?.Block.Release();
                mine.Constants[mine.Next] = Single(type, value, whole);
                return (IntPtr)(-1 - mine.Next);
            }
        }

        internal static void bh_at(IntPtr file, uint line)
        {
            Mine.File = file;
            Mine.Line = line;
        }

        internal static IntPtr bh_error_message() => Mine.Message;

        internal static IntPtr bh_error_file() => Mine.ErrorFile;

        internal static uint bh_error_line() => Mine.ErrorLine;

        internal static IntPtr bh_status_text(int status)
        {
            lock (Gate)
            {
                if (!StatusTexts.TryGetValue(status, out IntPtr text)) StatusTexts[status] = text = Place.Unmanaged(((Status)status).ToString());
                return text;
            }
        }

        internal static int bh_context_create(out IntPtr result, IntPtr stack)
        {
            IntPtr made = IntPtr.Zero;
            int status = Try(() =>
            {
                string wanted = Fail.Text(stack);
                if (wanted != "" && wanted != Name) throw new Failure(Status.Config, "there is no stack '" + wanted + "' without bh's own library");
                Contexts.Add(++last);
                made = (IntPtr)last;
            });
            result = made;
            return status;
        }

        internal static int bh_context_destroy(IntPtr context) => Try(() =>
        {
            long known = Known(context);
            foreach (var gone in Arrays.Where(entry => entry.Value.Context == known).ToArray())
            {
                Arrays.Remove(gone.Key);
                gone.Value.View.Block.Release();
            }
            if (known != 0) Contexts.Remove(known);
        });

        internal static int bh_flush(IntPtr context) => Try(() => Known(context));

        internal static int bh_sync(IntPtr context) => Try(() => Known(context));

        internal static int bh_eager(IntPtr context, int eager) => Try(() => Known(context));

        internal static int bh_stack_name(out IntPtr result, IntPtr context) => Tell(out result, context, () => Name);

        internal static int bh_info(out IntPtr result, IntPtr context) =>
            Tell(out result, context, () => "stack " + Name + ": operations by .NET, one at a time, on one thread");

        internal static int bh_statistics_get(out Statistics result, IntPtr context)
        {
            var found = new Statistics();
            int status = Try(() =>
            {
                long known = Known(context);
                var views = Arrays.Values.Where(entry => entry.Context == known).Select(entry => entry.View).ToList();
                found.Arrays = (ulong)views.Count;
                found.Bases = (ulong)views.Select(view => view.Block).Distinct().Count();
                found.Recorded = found.Instructions = found.Batches = found.BatchesOnCaller = (ulong)operations;
            });
            result = found;
            return status;
        }

        internal static int bh_counter(out ulong result, IntPtr context, IntPtr name)
        {
            result = (ulong)operations;
            return Try(() =>
            {
                Known(context);
                if (Fail.Text(name) != "managed.operations") throw new Failure(Status.Argument, "there is no counter '" + Fail.Text(name) + "'");
            });
        }

        internal static int bh_memory_get(out Memory result, IntPtr context)
        {
            result = new Memory { InUse = (ulong)Block.InUse, Peak = (ulong)Block.Peak, Limit = ulong.MaxValue };
            return Try(() => Known(context));
        }

        internal static int bh_threads_get(out int result, IntPtr context)
        {
            result = 1;
            return Try(() => Known(context));
        }

        internal static int bh_threads_set(IntPtr context, int threads) => Try(() =>
        {
            Known(context);
            if (threads != 1) throw new Failure(Status.Argument, threads + " threads: the managed engine has one");
        });

        internal static UIntPtr bh_dtype_size(int dtype) => (UIntPtr)Types.Size((ElementType)dtype);

        internal static IntPtr bh_bool(bool value) => Constant(ElementType.Bool, 0, value ? 1 : 0);

        internal static IntPtr bh_i8(sbyte value) => Constant(ElementType.I8, 0, value);

        internal static IntPtr bh_i16(short value) => Constant(ElementType.I16, 0, value);

        internal static IntPtr bh_i32(int value) => Constant(ElementType.I32, 0, value);

        internal static IntPtr bh_i64(long value) => Constant(ElementType.I64, 0, value);

        internal static IntPtr bh_u8(byte value) => Constant(ElementType.U8, 0, value);

        internal static IntPtr bh_u16(ushort value) => Constant(ElementType.U16, 0, value);

        internal static IntPtr bh_u32(uint value) => Constant(ElementType.U32, 0, value);

        internal static IntPtr bh_u64(ulong value) => Constant(ElementType.U64, 0, unchecked((long)value));

        internal static IntPtr bh_f32(float value) => Constant(ElementType.F32, value);

        internal static IntPtr bh_f64(double value) => Constant(ElementType.F64, value);

        internal static IntPtr bh_c128(double real, double imaginary) => Constant(ElementType.C128, new Complex(real, imaginary));

        internal static int bh_empty(out IntPtr result, IntPtr context, int dtype, int rank, long[] shape) =>
            Make(out result, context, () => Made(dtype, shape));

        internal static int bh_zeros(out IntPtr result, IntPtr context, int dtype, int rank, long[] shape) =>
            Make(out result, context, () => Made(dtype, shape));

        internal static int bh_ones(out IntPtr result, IntPtr context, int dtype, int rank, long[] shape) =>
            Make(out result, context, () => Made(dtype, shape, made => Fill(made, Single(made.Type, 1, 1))));

        internal static int bh_full(out IntPtr result, IntPtr context, IntPtr value, int rank, long[] shape) =>
            Make(out result, context, () => Made((int)ViewOf(value).Type, shape, made => Operations.Run(Opcode.Copy, 0, made, new[] { ViewOf(value) })));

        private static void Fill(View made, View number)
        {
            Operations.Run(Opcode.Copy, 0, made, new[] { number });
            number.Block.Release();
        }

        internal static int bh_from_data(out IntPtr result, IntPtr context, int dtype, int rank, long[] shape, IntPtr data) =>
            Make(out result, context, () => Made(dtype, shape, made => Operations.Run(Opcode.Copy, 0, made, new[] { Foreign(data, made) })));

        private static View Foreign(IntPtr data, View like) => new View(new Block(data), like.Type, 0, like.Shape, View.InOrder(like.Shape));

        internal static int bh_random_uniform(out IntPtr result, IntPtr context, int dtype, int rank, long[] shape, ulong key) =>
            Make(out result, context, () => Made(dtype, shape, made => Methods.Random(made, key, 0)));

        /// <summary>By Box and Muller, in the order of bh's own.</summary>
        internal static int bh_random_normal(out IntPtr result, IntPtr context, int dtype, int rank, long[] shape, ulong key) =>
            Make(out result, context, () => Made(dtype, shape, radius =>
            {
                ElementType type = radius.Type;
                if (Types.KindOf(type) != Kind.Real) throw new Failure(Status.Type, "random_normal: type " + Types.Name(type) + " is no floating-point type");
                View angle = View.New(type, radius.Shape);
                Methods.Random(radius, key, 0);
                Apply(Opcode.Subtract, radius, Single(type, 1), radius);
                Apply(Opcode.Log, radius, radius);
                Apply(Opcode.Multiply, radius, radius, Single(type, -2));
                Apply(Opcode.Sqrt, radius, radius);
                Methods.Random(angle, key, long.MaxValue / 2);
                Apply(Opcode.Multiply, angle, angle, Single(type, 2 * Math.PI));
                Apply(Opcode.Cos, angle, angle);
                Apply(Opcode.Multiply, radius, radius, angle);
                angle.Block.Release();
            }));

        private static void Apply(Opcode opcode, View output, params View[] inputs) => Operations.Run(opcode, 0, output, inputs);

        internal static int bh_arange(out IntPtr result, IntPtr context, int dtype, double start, double stop, double step) =>
            Make(out result, context, () =>
            {
                bool isFinite = new[] { start, stop, step }.All(value => !double.IsNaN(value) && !double.IsInfinity(value));
                if (step == 0 || !isFinite) throw new Failure(Status.Argument, "arange: start " + start + ", stop " + stop + " and step " + step + " make no range");
                double count = Math.Max(0, Math.Ceiling((stop - start) / step));
                if (count >= 9e18) throw new Failure(Status.Shape, "arange: " + count + " elements are too many");
                ElementType type = Types.Known(dtype);
                if (Types.IsInteger(type) && (start != Math.Truncate(start) || step != Math.Truncate(step)))
                {
                    throw new Failure(Status.Argument, "arange: start " + start + " and step " + step + " must be whole numbers for type " + Types.Name(type));
                }
                return Spaced(type, (long)count, null, step, start);
            });

        /// <summary>The places of elements, divided by a number if there is one, multiplied with a second, added to a third.</summary>
        private static View Spaced(ElementType type, long count, double? divisor, double factor, double start)
        {
            View made = View.New(type, count);
            if (Types.IsInteger(type))
            {
                Methods.Fill(made, null, place => unchecked((long)start + place * (long)factor));
                return made;
            }
            if (Types.KindOf(type) != Kind.Real) throw new Failure(Status.Type, "a range of type " + Types.Name(type));
            Methods.Fill(made, place => place, null);
            if (divisor != null) Apply(Opcode.Divide, made, made, Single(type, divisor.Value));
            Apply(Opcode.Multiply, made, made, Single(type, factor));
            Apply(Opcode.Add, made, made, Single(type, start));
            return made;
        }

        internal static int bh_linspace(out IntPtr result, IntPtr context, int dtype, double start, double stop, long count) =>
            Make(out result, context, () =>
            {
                ElementType type = Types.Known(dtype);
                if (Types.KindOf(type) != Kind.Real) throw new Failure(Status.Type, "a range of fractions has a floating-point type, not " + Types.Name(type));
                if (count < 0) throw new Failure(Status.Argument, "linspace: " + count + " elements");
                double parts = count - 1, span = stop - start, step = span / parts;
                View made = step == 0 ? Spaced(type, count, parts, span, start) : Spaced(type, count, null, count == 1 ? span : step, start);
                if (count > 1) Fill(made.With(made.Start + count - 1, new long[0], new long[0]), Single(type, stop));
                return made;
            });

        internal static int bh_load(out IntPtr result, IntPtr context, IntPtr path) => Make(out result, context, () => Files.Load(Fail.Text(path)));

        internal static int bh_save(IntPtr path, IntPtr a) => Try(() => Files.Save(Fail.Text(path), ViewOf(a)));

        internal static int bh_free(IntPtr a) => Try(() =>
        {
            View view = ViewOf(a);
            Arrays.Remove((long)a);
            view.Block.Release();
        });

        internal static int bh_rank(out int result, IntPtr a)
        {
            int rank = 0;
            int status = Try(() => rank = ViewOf(a).Rank);
            result = rank;
            return status;
        }

        internal static int bh_shape(long[] result, IntPtr a) => Try(() => ViewOf(a).Shape.CopyTo(result, 0));

        internal static int bh_stride(long[] result, IntPtr a) => Try(() => ViewOf(a).Stride.CopyTo(result, 0));

        internal static int bh_dtype_of(out int result, IntPtr a)
        {
            int type = 0;
            int status = Try(() => type = (int)ViewOf(a).Type);
            result = type;
            return status;
        }

        internal static int bh_op(IntPtr result, ushort opcode, ushort param, UIntPtr count, IntPtr[] inputs) => Try(() =>
        {
            View output = Writable(result);
            var call = new Call((Opcode)opcode, param, inputs.Select(ViewOf).ToArray());
            call.Into(output);
            operations++;
        });

        internal static int bh_op_new(out IntPtr result, ushort opcode, ushort param, int dtype, UIntPtr count, IntPtr[] inputs)
        {
            IntPtr made = IntPtr.Zero;
            int status = Try(() =>
            {
                Entry[] found = inputs.Select(Find).ToArray();
                var call = new Call((Opcode)opcode, param, found.Select(entry => entry.View).ToArray());
                View output = View.New(call.TypeOfResult(dtype < 0 ? (ElementType?)null : Types.Known(dtype)), call.Shape);
                call.Into(output);
                operations++;
                made = Add(output, Math.Max(0, found.Max(entry => entry.Context)));
            });
            result = made;
            return status;
        }

        internal static int bh_cast(out IntPtr result, IntPtr a, int dtype) => Derive(out result, a, view =>
        {
            var call = new Call(Opcode.Copy, 0, new[] { view });
            View made = View.New(call.TypeOfResult(Types.Known(dtype)), view.Shape);
            call.Into(made);
            return made;
        });

        internal static int bh_part(out IntPtr result, IntPtr a, UIntPtr count, Subscript[] subscripts) =>
            Derive(out result, a, view => Arrangement.Part(view, subscripts));

        internal static int bh_transpose(out IntPtr result, IntPtr a, int[] axes) => Derive(out result, a, view => Arrangement.Transpose(view, axes));

        internal static int bh_reshape(out IntPtr result, IntPtr a, int rank, long[] shape) =>
            Derive(out result, a, view => Arrangement.Reshape(view, shape));

        internal static int bh_broadcast(out IntPtr result, IntPtr a, int rank, long[] shape) => Derive(out result, a, view => view.StretchedTo(shape));

        internal static int bh_diagonal(out IntPtr result, IntPtr a, long offset, int first, int second) =>
            Derive(out result, a, view => Arrangement.Diagonal(view, offset, first, second));

        internal static int bh_reverse(out IntPtr result, IntPtr a, int axis) => Derive(out result, a, view => Arrangement.Reverse(view, axis));

        internal static int bh_new_axis(out IntPtr result, IntPtr a, int axis) => Derive(out result, a, view => Arrangement.NewAxis(view, axis));

        internal static int bh_read(IntPtr data, IntPtr a) => Try(() => Apply(Opcode.Copy, Foreign(data, ViewOf(a)), ViewOf(a)));

        internal static int bh_write(IntPtr a, IntPtr data) => Try(() => Apply(Opcode.Copy, Writable(a), Foreign(data, ViewOf(a))));

        internal static int bh_map(out IntPtr result, IntPtr a, uint access)
        {
            IntPtr address = IntPtr.Zero;
            int status = Try(() =>
            {
                View view = (access & (uint)Access.Write) != 0 ? Writable(a) : ViewOf(a);
                address = (IntPtr)(view.Block.Start + view.Start * Types.Size(view.Type));
            });
            result = address;
            return status;
        }

        internal static int bh_unmap(IntPtr a) => Try(() => Find(a));

        internal static int bh_format(out IntPtr result, IntPtr a) => Tell(out result, IntPtr.Zero, () => Files.Text(ViewOf(a)));

        private static Buffer One(IntPtr a, ElementType type)
        {
            View view = ViewOf(a);
            if (view.Length != 1) throw new Failure(Status.Shape, "an array of shape " + View.Show(view.Shape) + " is no single number");
            var call = new Call(Opcode.Copy, 0, new[] { view.With(view.Start, new long[0], new long[0]) });
            View converted = View.New(call.TypeOfResult(type));
            call.Into(converted);
            Buffer found = Buffer.Of(converted);
            converted.Block.Release();
            return found;
        }

        static int Number<T>(out T result, Func<T> read)
        {
            T found = default(T);
            int status = Try(() => found = read());
            result = found;
            return status;
        }

        internal static int bh_scalar_bool(out bool result, IntPtr a) =>
            Number(out result, () => One(a, ElementType.Bool).Wholes[0] != 0);

        internal static int bh_scalar_i64(out long result, IntPtr a) => Number(out result, () => One(a, ElementType.I64).Wholes[0]);

        internal static int bh_scalar_u64(out ulong result, IntPtr a) =>
            Number(out result, () => unchecked((ulong)One(a, ElementType.U64).Wholes[0]));

        internal static int bh_scalar_f64(out double result, IntPtr a) => Number(out result, () => One(a, ElementType.F64).Reals[0]);

        internal static int bh_scalar_c128(double[] result, IntPtr a) => Try(() =>
        {
            Complex found = One(a, ElementType.C128).Pairs[0];
            result[0] = found.Real;
            result[1] = found.Imaginary;
        });

        internal static int bh_matmul(IntPtr result, IntPtr a, IntPtr b) => Try(() => Methods.MatMul(Writable(result), ViewOf(a), ViewOf(b)));

        internal static int bh_solve(IntPtr result, IntPtr a, IntPtr b) => Try(() => Methods.Solve(Writable(result), ViewOf(a), ViewOf(b)));

        internal static int bh_sort(IntPtr result, IntPtr a) => Try(() => Methods.Sort(Writable(result), ViewOf(a)));

        internal static int bh_fft(IntPtr result, IntPtr a) => Try(() => Methods.Transform(Writable(result), ViewOf(a), false));

        internal static int bh_ifft(IntPtr result, IntPtr a) => Try(() => Methods.Transform(Writable(result), ViewOf(a), true));
    }
}
