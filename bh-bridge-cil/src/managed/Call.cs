// An operation with its operands: what the opcode table asks of their types, the shape of the result, and who computes it.
using System.Linq;

namespace Bh.Managed
{
    /// <summary>What the result's type is.</summary>
    internal enum Result { Same, Truth, Part, Any, Choice, Fold, Running, Gathered }

    /// <summary>A row of the opcode table.</summary>
    internal sealed class Rule
    {
        internal readonly string Name, Taken;
        internal readonly int Inputs;
        internal readonly Result Result;

        internal Rule(string name, int inputs, string types, Result result)
        {
            Name = name;
            Inputs = inputs;
            Taken = types;
            Result = result;
        }

        internal bool Takes(ElementType type)
        {
            bool isBool = type == ElementType.Bool, isInteger = Types.IsInteger(type), isComplex = Types.KindOf(type) == Kind.Complex;
            switch (Taken)
            {
                case "all": return true;
                case "all but bool": return !isBool;
                case "all but complex": return !isComplex;
                case "bool": return isBool;
                case "bool, integers": return isBool || isInteger;
                case "integers": return isInteger;
                case "integers, floats": return !isBool && !isComplex;
                case "floats": return !isBool && !isInteger && !isComplex;
                case "floats, complex": return !isBool && !isInteger;
                default: return isComplex;
            }
        }
    }

    internal sealed class Call
    {
        private readonly Opcode opcode;
        private readonly ushort param;
        private readonly View[] inputs;
        private readonly Rule rule;

        internal Call(Opcode opcode, ushort param, View[] inputs)
        {
            this.opcode = opcode;
            this.param = param;
            this.inputs = inputs;
            if (!Rules.All.TryGetValue(opcode, out rule)) throw Operations.Lacking(opcode);
            if (inputs.Length != rule.Inputs) throw Wrong(Status.Argument, inputs.Length + " inputs");
            Check();
            Shape = ShapeOfResult();
        }

        internal long[] Shape { get; }

        private Failure Wrong(Status status, string text) => new Failure(status, rule.Name + ": " + text);

        private void Check()
        {
            int first = rule.Result == Result.Choice ? 1 : 0;
            if (first == 1 && inputs[0].Type != ElementType.Bool) throw Wrong(Status.Type, "a mask of type " + Types.Name(inputs[0].Type));
            if (!rule.Takes(inputs[first].Type)) throw Wrong(Status.Type, "type " + Types.Name(inputs[first].Type) + " is not possible");
            bool isGather = rule.Result == Result.Gathered;
            if (!isGather && inputs.Skip(first + 1).Any(input => input.Type != inputs[first].Type))
            {
                throw Wrong(Status.Type, "operands of types " + string.Join(" and ", inputs.Skip(first).Select(input => Types.Name(input.Type))));
            }
            if (opcode == Opcode.Powi && (param < 2 || param > 5)) throw Wrong(Status.Argument, "the exponent " + param + " is not 2 to 5");
        }

        private long[] ShapeOfResult()
        {
            View first = inputs[0];
            switch (rule.Result)
            {
                case Result.Fold:
                    if (param >> first.Rank != 0 || param == 0) throw Wrong(Status.Argument, "axes that an array of shape " + View.Show(first.Shape) + " lacks");
                    return first.Shape.Where((extent, axis) => (param >> axis & 1) == 0).ToArray();
                case Result.Running:
                    bool isOne = Enumerable.Range(0, first.Rank).Any(axis => param == 1 << axis);
                    if (!isOne) throw Wrong(Status.Argument, "an axis that an array of shape " + View.Show(first.Shape) + " lacks");
                    return first.Shape;
                case Result.Gathered:
                    return inputs[1].Shape;
                default:
                    return inputs.Select(input => input.Shape).Aggregate(View.Common);
            }
        }

        /// <summary>The result's type, where the inputs leave it open the one that is wanted.</summary>
        internal ElementType TypeOfResult(ElementType? wanted)
        {
            ElementType type = inputs[rule.Result == Result.Choice ? 1 : 0].Type;
            bool isComplex = Types.KindOf(type) == Kind.Complex;
            switch (rule.Result)
            {
                case Result.Truth: return ElementType.Bool;
                case Result.Part: return isComplex ? ElementType.F64 : type;
                case Result.Any:
                    ElementType found = wanted ?? type;
                    if (isComplex && found != ElementType.Bool && found != type) throw Wrong(Status.Type, "complex numbers do not become " + Types.Name(found));
                    return found;
                default: return type;
            }
        }

        /// <summary>Carries the operation out.</summary>
        internal void Into(View output)
        {
            ElementType type = TypeOfResult(output.Type);
            if (output.Type != type) throw Wrong(Status.Type, "a result of type " + Types.Name(output.Type) + " where " + Types.Name(type) + " comes out");
            bool fits = output.Shape.SequenceEqual(rule.Result == Result.Fold || rule.Result == Result.Running ? Shape : View.Common(output.Shape, Shape));
            if (!fits) throw Wrong(Status.Shape, "a result of shape " + View.Show(output.Shape) + " where " + View.Show(Shape) + " comes out");
            if (rule.Result == Result.Fold) Folds.Reduce(opcode, param, output, inputs[0]);
            else if (rule.Result == Result.Running) Folds.Accumulate(opcode, param, output, inputs[0]);
            else if (rule.Result == Result.Gathered) Methods.Gather(output, inputs[0], inputs[1]);
            else Operations.Run(opcode, param, output, inputs);
        }
    }
}
