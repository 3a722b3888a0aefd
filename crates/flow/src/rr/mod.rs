//! Request/response.
