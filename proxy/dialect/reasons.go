package dialect

// Reasons lists every reason that a dialect can give.
func Reasons() []Reason {
	return []Reason{
		ReasonNotJSON, ReasonShape, ReasonTruncated, ReasonTokenIDs, ReasonMedia,
		ReasonStored, ReasonEncrypted, ReasonTooLong, ReasonMIME, ReasonNoDialect, ReasonGeneric,
	}
}
