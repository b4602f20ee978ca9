/// The version of the programs and of the library.
public enum GenVersion {
    /// By semantic versioning; the message and event contracts have versions of their own.
    public static let current = "0.1.0"
}
