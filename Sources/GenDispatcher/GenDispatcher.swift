@main
struct GenDispatcher {
    static func main() async {}
}
