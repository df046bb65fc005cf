//! Which messages are answers, and what is learnt from them: signatures (RFC 8945) and cookies (RFC 7873),
//! against BIND, and with a forger on the path.

mod bind;
mod cookies;
mod load;
mod path;
mod signatures;
