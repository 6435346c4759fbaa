//! Where a source can be changed, and into what.

use crate::Outcome;
use crate::modules::is_conditional;
use crate::mutant::{Mutant, Piece};
use crate::text::{hash, short};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, ExprLit, Lit, Pat, ReturnType, Signature, Stmt, Type, UnOp};

/// All mutants of a source.
pub fn mutants(crate_name: &str, file: &str, source: &str) -> Outcome<Vec<Mutant>> {
    let parsed = syn::parse_file(source).map_err(|error| format!("{file}: {error}"))?;
    let mut finder = Finder { crate_name, file, source, functions: Vec::new(), found: Vec::new() };
    finder.visit_file(&parsed);
    Ok(finder.found)
}

struct Finder<'a> {
    crate_name: &'a str,
    file: &'a str,
    source: &'a str,
    functions: Vec<String>,
    found: Vec<Mutant>,
}

fn text(text: &str) -> Piece {
    Piece::Text(text.to_owned())
}

/// `(if awake { changed } else { original })`
fn instead(changed: Vec<Piece>) -> Vec<Piece> {
    let mut pieces = vec![text("(if $M { ")];
    pieces.extend(changed);
    pieces.extend([text(" } else { "), Piece::Original, text(" })")]);
    pieces
}

fn range(node: &impl Spanned) -> Range<usize> {
    node.span().byte_range()
}

impl Finder<'_> {
    fn add(&mut self, region: Range<usize>, change: String, pieces: Vec<Piece>) {
        if self.functions.is_empty() {
            return;
        }
        self.found.push(Mutant {
            crate_name: self.crate_name.to_owned(),
            file: self.file.to_owned(),
            function: self.functions.join("::"),
            change,
            line: self.source[..region.start].matches('\n').count() + 1,
            region,
            pieces,
        });
    }

    fn short(&self, region: Range<usize>) -> String {
        short(&self.source[region])
    }

    /// A function's body: what it returns is replaced, then what is in it.
    fn body(&mut self, signature: &Signature, block: &Block) {
        if signature.constness.is_some() {
            return;
        }
        self.functions.push(signature.ident.to_string());
        let start = block.brace_token.span.open().byte_range().end;
        for value in defaults(&signature.output) {
            let change = format!("returns {}", if value.is_empty() { "at once" } else { &value });
            self.add(start..start, change, vec![text(&format!(" if $M {{ return {value}; }}")), Piece::Original]);
        }
        self.visit_block(block);
        self.functions.pop();
    }

    fn condition(&mut self, condition: &Expr, can_be_true: bool) {
        let region = range(condition);
        let shown = self.short(region.clone());
        if has_let(condition) {
            return self.add(region, format!("{shown} → false"), vec![text("!$M && "), Piece::Original]);
        }
        if can_be_true {
            let pieces = vec![text("($M || ("), Piece::Original, text("))")];
            self.add(region.clone(), format!("{shown} → true"), pieces);
        }
        self.add(region, format!("{shown} → false"), vec![text("(!$M && ("), Piece::Original, text("))")]);
    }

    fn binary(&mut self, node: &syn::ExprBinary) {
        let (left, right, operator) = (range(&*node.left), range(&*node.right), range(&node.op));
        if has_let(&node.left) || has_let(&node.right) {
            return;
        }
        for other in others(&node.op) {
            let assigns = other.ends_with('=') && !["==", "!=", "<=", ">="].contains(other);
            let changed = if assigns {
                vec![Piece::Part(left.clone()), text(&format!(" {other} ")), Piece::Part(right.clone())]
            } else {
                let between = format!(") {other} (");
                vec![text("("), Piece::Part(left.clone()), text(&between), Piece::Part(right.clone()), text(")")]
            };
            let old = &self.source[operator.clone()];
            let change = format!("{} : {old} → {other}", self.short(range(node)));
            self.add(range(node), change, instead(changed));
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        let Stmt::Expr(expression, _) = statement else { return };
        let deletable = matches!(
            expression,
            Expr::MethodCall(_)
                | Expr::Call(_)
                | Expr::Assign(_)
                | Expr::Break(_)
                | Expr::Continue(_)
                | Expr::ForLoop(_)
        ) || matches!(expression, Expr::Return(it) if it.expr.is_none());
        let compound = matches!(expression, Expr::Binary(it) if is_assignment(&it.op));
        if deletable || compound {
            let change = format!("deleted {}", self.short(range(statement)));
            self.add(range(statement), change, vec![text("if !$M { "), Piece::Original, text(" }")]);
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        if !is_conditional(&node.attrs) {
            self.body(&node.sig, &node.block);
        }
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        if !is_conditional(&node.attrs) {
            self.body(&node.sig, &node.block);
        }
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        if let Some(block) = node.default.as_ref().filter(|_| !is_conditional(&node.attrs)) {
            self.body(&node.sig, block);
        }
    }

    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        if is_conditional(&node.attrs) || node.trait_.as_ref().is_some_and(|(_, path, _)| path.is_ident("Debug")) {
            return;
        }
        let name = self.short(range(&*node.self_ty));
        self.functions.push(name);
        visit::visit_item_impl(self, node);
        self.functions.pop();
    }

    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        if !is_conditional(&node.attrs) {
            visit::visit_item_mod(self, node);
        }
    }

    fn visit_block(&mut self, node: &'ast Block) {
        for (at, statement) in node.stmts.iter().enumerate() {
            if is_conditional(attributes(statement)) {
                continue;
            }
            let is_value = at + 1 == node.stmts.len() && matches!(statement, Stmt::Expr(_, None));
            if !is_value {
                self.statement(statement);
            }
            self.visit_stmt(statement);
        }
    }

    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        self.binary(node);
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &'ast syn::ExprUnary) {
        if matches!(node.op, UnOp::Not(_) | UnOp::Neg(_)) && !matches!(*node.expr, Expr::Lit(_)) {
            let change = format!("{} without its sign", self.short(range(node)));
            self.add(range(node), change, instead(vec![Piece::Part(range(&*node.expr))]));
        }
        visit::visit_expr_unary(self, node);
    }

    fn visit_expr_if(&mut self, node: &'ast syn::ExprIf) {
        self.condition(&node.cond, true);
        visit::visit_expr_if(self, node);
    }

    fn visit_expr_while(&mut self, node: &'ast syn::ExprWhile) {
        self.condition(&node.cond, false);
        visit::visit_expr_while(self, node);
    }

    fn visit_expr_match(&mut self, node: &'ast syn::ExprMatch) {
        let is_rest = |arm: &syn::Arm| match &arm.pat {
            Pat::Wild(_) => arm.guard.is_none(),
            // Others are names of constants and variants.
            Pat::Ident(name) if name.subpat.is_none() => {
                arm.guard.is_none() && name.ident.to_string().starts_with(char::is_lowercase)
            }
            _ => false,
        };
        let has_rest = node.arms.last().is_some_and(is_rest);
        for arm in &node.arms {
            if is_conditional(&arm.attrs) {
                continue;
            }
            if let Some((_, guard)) = &arm.guard {
                self.condition(guard, true);
            } else if has_rest && !is_rest(arm) {
                let end = range(&arm.pat).end;
                let change = format!("arm {} deleted", self.short(range(&arm.pat)));
                self.add(end..end, change, vec![text(" if !$M")]);
            }
        }
        visit::visit_expr_match(self, node);
    }

    fn visit_expr_lit(&mut self, node: &'ast ExprLit) {
        let Lit::Int(literal) = &node.lit else { return };
        let Ok(value) = literal.base10_digits().parse::<u128>() else { return };
        if literal.suffix().starts_with('f') {
            return;
        }
        let region = range(node);
        let chance = hash(&format!("{} {} {}", self.file, self.functions.join("::"), self.found.len()));
        let other = if value == 0 || chance & 1 == 0 { value + 1 } else { value - 1 };
        let change = format!("{} → {other}", self.short(region.clone()));
        self.add(region, change, instead(vec![text(&format!("{other}{}", literal.suffix()))]));
    }

    fn visit_expr_repeat(&mut self, node: &'ast syn::ExprRepeat) {
        self.visit_expr(&node.expr);
    }

    // Neither patterns, types and constants nor macros can hold a choice.
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

fn attributes(statement: &Stmt) -> &[syn::Attribute] {
    match statement {
        Stmt::Local(local) => &local.attrs,
        Stmt::Expr(Expr::Block(block), _) => &block.attrs,
        Stmt::Expr(Expr::MethodCall(call), _) => &call.attrs,
        Stmt::Expr(Expr::Call(call), _) => &call.attrs,
        Stmt::Expr(Expr::If(it), _) => &it.attrs,
        Stmt::Expr(Expr::ForLoop(it), _) => &it.attrs,
        Stmt::Expr(Expr::Assign(it), _) => &it.attrs,
        Stmt::Expr(Expr::Binary(it), _) => &it.attrs,
        _ => &[],
    }
}

fn has_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(it) => has_let(&it.left) || has_let(&it.right),
        _ => false,
    }
}

fn is_assignment(operator: &BinOp) -> bool {
    use BinOp::*;
    matches!(
        operator,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitXorAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

/// The operators that may replace an operator.
fn others(operator: &BinOp) -> &'static [&'static str] {
    match operator {
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) => &["+", "/"],
        BinOp::Mul(_) => &["+", "/"],
        BinOp::Div(_) => &["*"],
        BinOp::Rem(_) => &["/"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::BitXor(_) => &["|"],
        BinOp::BitAnd(_) => &["|", "^"],
        BinOp::BitOr(_) => &["&"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["<=", ">="],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::Gt(_) => &[">=", "<="],
        BinOp::AddAssign(_) => &["-="],
        BinOp::SubAssign(_) => &["+="],
        BinOp::MulAssign(_) => &["+=", "/="],
        BinOp::DivAssign(_) => &["*="],
        BinOp::BitAndAssign(_) => &["|="],
        BinOp::BitOrAssign(_) => &["&="],
        BinOp::BitXorAssign(_) => &["|="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        _ => &[],
    }
}

/// Values that a function may return at once; an empty text where it returns nothing.
fn defaults(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec![String::new()],
        ReturnType::Type(_, of) => values(of),
    }
}

fn values(of: &Type) -> Vec<String> {
    let of = match of {
        Type::Path(path) => path,
        Type::Tuple(tuple) => {
            let parts: Vec<Vec<String>> = tuple.elems.iter().map(values).collect();
            if parts.iter().any(Vec::is_empty) {
                return Vec::new();
            }
            return vec![format!("({})", parts.iter().map(|part| format!("{}, ", part[0])).collect::<String>())];
        }
        _ => return Vec::new(),
    };
    let Some(last) = of.path.segments.last() else { return Vec::new() };
    let inner = match &last.arguments {
        syn::PathArguments::AngleBracketed(arguments) => arguments.args.iter().find_map(|argument| match argument {
            syn::GenericArgument::Type(inner) => Some(inner),
            _ => None,
        }),
        _ => None,
    };
    let fixed: &[&str] = match last.ident.to_string().as_str() {
        "bool" => &["true", "false"],
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" | "c_int" => {
            &["0", "1"]
        }
        "f32" | "f64" => &["0.0"],
        "String" => &["String::new()"],
        "Vec" => &["Vec::new()"],
        "Option" => &["None"],
        "Result" => {
            let inner = inner.map_or_else(Vec::new, values);
            return inner.into_iter().take(1).map(|value| format!("Ok({value})")).collect();
        }
        _ => &[],
    };
    fixed.iter().map(|value| (*value).to_owned()).collect()
}
