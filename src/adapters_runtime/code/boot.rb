# A Ruby that is started before its job. It reads the job from descriptor 3, then behaves as `ruby main.rb`.
BEGIN_LINE = IO.for_fd(3, "r+")
words = BEGIN_LINE.read.b.split("\0".b, -1)  # as bytes: not every locale is one of UTF-8
exit! if words.empty?
name, folder, live, *variables = words
$0 = name.force_encoding(Encoding.default_external)
ENV.replace(variables.to_h { |variable| variable.split("=".b, 2) })
Dir.chdir(folder)
$stdout.sync = true if live == "live"
BEGIN_LINE.write("\0")
BEGIN_LINE.close
Object.send(:remove_const, :BEGIN_LINE)
if (cut = File.binread($0).index(/^__END__\r?\n/n))
  DATA = File.open($0)
  DATA.pos = cut
  DATA.gets
end
# The text of a syntax error differs by version: after one, a new Ruby reads the file. Nothing has run by then.
verbose, $VERBOSE = $VERBOSE, nil
begin
  RubyVM::InstructionSequence.compile_file($0)
rescue SyntaxError
  exec RbConfig.ruby, $0
end
$VERBOSE = verbose
begin
  load $0
rescue Exception => error
  unless error.is_a?(SystemExit) || error.backtrace.nil?
    places = error.backtrace.reject { |place| place.start_with?("-e:") }
    error.set_backtrace(places.map { |place| place.sub("<top (required)>", "<main>") })
  end
  raise
end
