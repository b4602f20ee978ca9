import CLinux
import Glibc

/// Starts a thread that nobody waits for.
/// - Parameter name: shown by `ps` and `top`; Linux keeps 15 bytes of it.
func startThread(name: String, _ body: @escaping @Sendable () -> Void) {
    final class Start {
        let name: String
        let body: @Sendable () -> Void
        init(_ name: String, _ body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    var thread = pthread_t()
    // The retain is balanced by takeRetainedValue at the thread's start.
    let start = Unmanaged.passRetained(Start(String(name.prefix(15)), body))
    let result = pthread_create(
        &thread, &attributes,
        { context in
            guard let context else { return nil }
            let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
            clinux_name_thread(start.name)
            start.body()
            return nil
        }, start.toOpaque())
    if result != 0 { ProcessLimit.end("no thread can be started: \(String(cString: strerror(result)))") }
}
