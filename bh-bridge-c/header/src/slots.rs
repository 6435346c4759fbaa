//! The table of a component in C, from the table of slots.

use bh_bytecode::{Base, Opcode, View};
use bh_core::abi::{
    Adoption, Evaluation, Export, ExportRequest, HostMemory, ImmediateOperation, Residency, ScalarOperation, Served,
    Wire, WireAnswer,
};
use bh_core::for_each_slot;
use bh_core::{Registry, Ticket};

/// Columns of a line, at most.
const WIDTH: usize = 110;

const HEAD: &str = "
// The functions and facts of a component. Null functions forward to the first child.
typedef struct bh_component_table {
    // Bytes of this struct, for growth.
    size_t struct_size;
    // The `BH_ABI_VERSION` it was built for.
    uint32_t abi_version;
    // A BH_KIND_ number.
    uint32_t kind;
    // Name, as in config sections: `filter`, `ve-cpu`.
    const char *name;
    // Version of the component.
    const char *version;
    // The config keys it knows, a null-terminated list of strings; null for none.
    const char *const *keys;
";

macro_rules! table_in_c {
    (
        special { $($(#[doc = $special_doc:literal])* $special:ident: $type:ident;)* }
        plain {
            $($(#[doc = $doc:literal])*
            $forwarding:ident $calls:ident fn $name:ident($($argument:ident: $kind:ty),*) $(-> $answer:ty)? = $default:ident;)*
        }
    ) => {
        /// The struct with its comments.
        pub fn component_table() -> String {
            let mut text = String::from(HEAD);
            $(
                comment(&mut text, &[$($special_doc),*]);
                let special = stringify!($special);
                text += &format!("    bh_{special}_function {special};\n");
            )*
            $(
                comment(&mut text, &[$($doc),*]);
                let mut parameters = vec![String::from("void *context")];
                $(parameters.push(<$kind as Wire>::C.replace('%', stringify!($argument)));)*
                $(parameters.push(<$answer as WireAnswer>::C.replace('%', "answer"));)?
                parameters.push("bh_error_record *error".into());
                function(&mut text, stringify!($name), &parameters);
            )*
            text + "} bh_component_table;\n"
        }
    };
}
for_each_slot!(table_in_c);

/// The lines of a comment.
fn comment(text: &mut String, lines: &[&str]) {
    for line in lines {
        *text += &format!("    //{line}\n");
    }
}

/// A function pointer that returns a status.
fn function(text: &mut String, name: &str, parameters: &[String]) {
    let head = format!("    bh_status (*{name})(");
    let line = format!("{head}{});\n", parameters.join(", "));
    if line.len() <= WIDTH {
        *text += &line;
    } else {
        let indent = format!(",\n{}", " ".repeat(head.len()));
        *text += &format!("{head}{});\n", parameters.join(&indent));
    }
}
