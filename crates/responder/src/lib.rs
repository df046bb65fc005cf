//! responder
