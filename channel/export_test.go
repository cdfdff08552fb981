package channel

// BodyTables are the migrations of an Ingress.
var BodyTables = bodyTables
