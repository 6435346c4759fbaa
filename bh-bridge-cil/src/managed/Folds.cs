// Folds along axes, and running folds.
using System;
using System.Linq;
using System.Numerics;

namespace Bh.Managed
{
    internal static class Folds
    {
        private static Opcode Step(Opcode fold)
        {
            switch (fold)
            {
                case Opcode.AddReduce: case Opcode.AddAccumulate: return Opcode.Add;
                case Opcode.MultiplyReduce: case Opcode.MultiplyAccumulate: return Opcode.Multiply;
                case Opcode.MinimumReduce: return Opcode.Minimum;
                case Opcode.MaximumReduce: return Opcode.Maximum;
                case Opcode.LogicalAndReduce: case Opcode.BitwiseAndReduce: return Opcode.BitwiseAnd;
                case Opcode.LogicalOrReduce: case Opcode.BitwiseOrReduce: return Opcode.BitwiseOr;
                case Opcode.LogicalXorReduce: case Opcode.BitwiseXorReduce: return Opcode.BitwiseXor;
                default: throw Operations.Lacking(fold);
            }
        }

        /// <summary>
        /// A fold over the axes of a mask. The folded axes are halved until one element is left of each, so that sums of floats err
        /// by the logarithm of their length.
        /// </summary>
        internal static void Reduce(Opcode fold, ushort mask, View output, View input)
        {
            Opcode step = Step(fold);
            View left = input;
            for (int axis = 0; axis < input.Rank; axis++)
            {
                if ((mask >> axis & 1) == 0) continue;
                if (input.Shape[axis] == 0) left = Neutral(fold, left, axis);
                while (left.Shape[axis] > 1) left = Halved(step, left, axis, left.Block != input.Block);
            }
            var kept = Enumerable.Range(0, input.Rank).Where(axis => (mask >> axis & 1) == 0).ToArray();
            View found = left.With(left.Start, kept.Select(axis => left.Shape[axis]).ToArray(), kept.Select(axis => left.Stride[axis]).ToArray());
            Operations.Run(Opcode.Copy, 0, output, new[] { found });
            if (left.Block != input.Block) left.Block.Release();
        }

        /// <summary>The first half of an axis with the second half folded into it; an odd element at the end stays for the next turn.</summary>
        private static View Halved(Opcode step, View whole, int axis, bool isOwn)
        {
            long extent = whole.Shape[axis], half = extent / 2, rest = extent - half;
            View first = Part(whole, axis, 0, half), second = Part(whole, axis, rest, half);
            if (isOwn)
            {
                Operations.Run(step, 0, first, new[] { first, second });
                return Part(whole, axis, 0, rest);
            }
            var shape = (long[])whole.Shape.Clone();
            shape[axis] = rest;
            View made = View.New(whole.Type, shape);
            Operations.Run(step, 0, Part(made, axis, 0, half), new[] { first, second });
            if (rest > half) Operations.Run(Opcode.Copy, 0, Part(made, axis, half, 1), new[] { Part(whole, axis, half, 1) });
            return made;
        }

        private static View Part(View whole, int axis, long from, long count)
        {
            var shape = (long[])whole.Shape.Clone();
            shape[axis] = count;
            return whole.With(whole.Start + from * whole.Stride[axis], shape, whole.Stride);
        }

        /// <summary>What a fold of no elements is, with an extent of one in place of none.</summary>
        private static View Neutral(Opcode fold, View whole, int axis)
        {
            Opcode step = Step(fold);
            if (step == Opcode.Minimum || step == Opcode.Maximum) throw new Failure(Status.Argument, "the extreme of no elements");
            var shape = (long[])whole.Shape.Clone();
            shape[axis] = 1;
            View made = View.New(whole.Type, shape), one = View.New(ElementType.I64);
            if (step == Opcode.Multiply || step == Opcode.BitwiseAnd)
            {
                new Buffer(Kind.Whole, 1) { Wholes = { [0] = step == Opcode.Multiply ? 1 : -1 } }.To(one);
                Operations.Run(Opcode.Copy, 0, made, new[] { one });
            }
            return made;
        }

        /// <summary>A running fold along the axis of a mask, line by line.</summary>
        internal static void Accumulate(Opcode fold, ushort mask, View output, View input)
        {
            int axis = Enumerable.Range(0, input.Rank).Single(one => mask >> one == 1);
            View target = Operations.Apart(output, new[] { input }, true);
            bool isSum = Step(fold) == Opcode.Add;
            var lines = input.Shape.Where((extent, at) => at != axis).ToArray();
            Func<View, View> others = view => view.With(view.Start, lines, view.Stride.Where((stride, at) => at != axis).ToArray());
            long count = input.Shape[axis];
            if (count > int.MaxValue) throw new Failure(Status.Unsupported, "the managed engine folds lines of less than 2³¹ elements");
            var buffer = new Buffer(Types.KindOf(input.Type), (int)count);
            Walk.Runs(lines, new[] { others(input), others(target) }, (starts, strides, some) =>
            {
                for (int line = 0; line < some; line++)
                {
                    buffer.Load(input, starts[0] + line * strides[0], input.Stride[axis], (int)count);
                    Run(buffer, isSum, input.Type, (int)count);
                    buffer.Store(target, starts[1] + line * strides[1], target.Stride[axis], (int)count);
                }
            });
            Operations.Finish(output, target);
        }

        private static void Run(Buffer line, bool isSum, ElementType type, int count)
        {
            bool isSingle = type == ElementType.F32, isTruth = type == ElementType.Bool;
            for (int i = 1; i < count; i++)
            {
                if (line.Kind == Kind.Whole)
                {
                    long a = line.Wholes[i - 1], b = line.Wholes[i];
                    line.Wholes[i] = unchecked(isTruth ? isSum ? a | b : a & b : isSum ? a + b : a * b);
                }
                else if (line.Kind == Kind.Real)
                {
                    double found = isSum ? line.Reals[i - 1] + line.Reals[i] : line.Reals[i - 1] * line.Reals[i];
                    line.Reals[i] = isSingle ? (float)found : found;
                }
                else line.Pairs[i] = isSum ? line.Pairs[i - 1] + line.Pairs[i] : line.Pairs[i - 1] * line.Pairs[i];
            }
        }
    }
}
