import GenShared
import Testing

/// The examples of FIPS 180-4.
@Suite("SHA-256")
struct SHA256DigestTests {
    @Test(
        "known digests",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ])
    func known(text: String, digest: String) throws {
        #expect(try SHA256Digest(of: Array(text.utf8)).description == digest)
    }
}
