//! Values with more than one notation. Each names the notations it accepts; serde's untagged enums would only
//! report that nothing matched.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Error, MapAccess, Visitor};

/// A value with several notations. Notations that are not overridden are rejected with `EXPECTED`.
pub trait Notations: Sized {
    /// Accepted notations, with examples.
    const EXPECTED: &'static str;
    /// Parses a string.
    fn text<E: Error>(text: &str) -> Result<Self, E>;
    /// Converts a number.
    fn number<E: Error>(number: f64) -> Result<Self, E> {
        Err(E::invalid_type(de::Unexpected::Float(number), &Self::EXPECTED))
    }
    /// Converts an integer.
    fn integer<E: Error>(number: i64) -> Result<Self, E> {
        Self::number(number as f64).map_err(|_: E| E::invalid_type(de::Unexpected::Signed(number), &Self::EXPECTED))
    }
    /// Deserializes a table.
    fn table<'de, A: MapAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(de::Unexpected::Map, &Self::EXPECTED))
    }
}

/// Deserializes a `T` from any of its notations.
pub struct NotationReader<T>(PhantomData<T>);

impl<T> Default for NotationReader<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T: Notations> Visitor<'de> for NotationReader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::text(text)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::integer(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        i64::try_from(number).map_or_else(|_| T::number(number as f64), T::integer)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        T::number(number)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::table(map)
    }
}

/// Implements `Deserialize` for types that implement [`Notations`].
#[macro_export]
macro_rules! read_by_notations {
    ($($type:ty),*) => {$(
        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any($crate::NotationReader::<$type>::default())
            }
        }
    )*};
}
