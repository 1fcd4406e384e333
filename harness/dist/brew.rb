# Runs a formula as Homebrew would, on a system of choice, with archives of a folder in place of those of the release:
#
#   brew.rb FORMULA FOLDER SYSTEM PROCESSOR TO
require "digest"
require "fileutils"
require "tmpdir"

FORMULA, FOLDER, SYSTEM, PROCESSOR, TO = ARGV

class Formula
  class << self
    attr_reader :address, :checksum

    %w[desc homepage license].each { |name| define_method(name) { |text| raise "#{name} is empty" if text.empty? } }

    def version(text = nil)
      @version = text || @version
    end

    %w[macos linux].each { |name| define_method("on_#{name}") { |&block| block.call if name == SYSTEM } }
    %w[arm intel].each { |name| define_method("on_#{name}") { |&block| block.call if name == PROCESSOR } }

    def url(text)
      @address = text
    end

    def sha256(text)
      @checksum = text
    end

    def test(&block)
      raise "no test" unless block
    end
  end

  def bin
    self
  end

  # `bin.install`: moves a file out of the archive's only folder, where Homebrew works.
  def put(name)
    FileUtils.mkdir_p("#{TO}/bin")
    FileUtils.cp(name, "#{TO}/bin/")
  end
end

load FORMULA
archive = File.join(FOLDER, File.basename(Creole.address))
raise "the checksum is another one" unless Digest::SHA256.file(archive).hexdigest == Creole.checksum
raise "#{Creole.address} is not of version #{Creole.version}" unless Creole.address.include?("/v#{Creole.version}/")

Dir.mktmpdir do |folder|
  system("tar", "-xzf", archive, "-C", folder, exception: true)
  Dir.chdir(Dir.children(folder).map { |name| File.join(folder, name) }.first) do
    formula = Creole.new
    work = formula.method(:install)
    formula.define_singleton_method(:bin) { Struct.new(:formula) { def install(name) = formula.put(name) }.new(self) }
    work.call
  end
end
