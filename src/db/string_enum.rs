//! The macro `string_enum!`: declares enumerations that use the same snake-case word for a value in
//! the database column and in JSON.

/// Declares enumerations. The words are the variant names in snake case. An enumeration whose
/// name exists in several modules sets its API document name: `#[schema(as = SpaceStatus)]`.
macro_rules! string_enum {
    ($($(#[$of_name:meta])* $name:ident { $($(#[$of_value:meta])* $value:ident),* $(,)? })*) => {$(
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, sea_orm::EnumIter, sea_orm::DeriveActiveEnum,
            serde::Serialize, serde::Deserialize, utoipa::ToSchema,
        )]
        $(#[$of_name])*
        #[sea_orm(rs_type = "String", db_type = "String(StringLen::N(64))", rename_all = "snake_case")]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$of_value])* $value),* }
    )*};
}

pub(crate) use string_enum;
