// SPDX-License-Identifier: GPL-3.0-or-later
// What JFrog's library for the plugins of CI servers makes of a repository manager: a line for
// each step.

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Date;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jfrog.build.api.util.NullLog;
import org.jfrog.build.client.ArtifactoryUploadResponse;
import org.jfrog.build.extractor.builder.ArtifactBuilder;
import org.jfrog.build.extractor.builder.BuildInfoBuilder;
import org.jfrog.build.extractor.builder.ModuleBuilder;
import org.jfrog.build.extractor.ci.BuildInfo;
import org.jfrog.build.extractor.ci.BuildRetention;
import org.jfrog.build.extractor.ci.Module;
import org.jfrog.build.extractor.clientConfiguration.client.artifactory.ArtifactoryManager;
import org.jfrog.build.extractor.clientConfiguration.deploy.DeployDetails;
import org.jfrog.build.extractor.clientConfiguration.util.spec.SpecsHelper;

public final class Client {
    private static final String REPO = "generic-staging-local";
    private static final String NAME = "library :: main";
    private static final String SHA1 = "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d";
    private static final String SHA256 =
        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    private static final String MD5 = "5d41402abc4b2a76b9719d911017c592";

    public static void main(String[] given) throws Exception {
        Path folder = Files.createTempDirectory("build-info");
        File file = Files.writeString(folder.resolve("a.txt"), "hello").toFile();
        try (ArtifactoryManager server =
                new ArtifactoryManager(given[0], given[1], given[2], new NullLog())) {
            step("version", () -> server.getVersion());
            step("upload", () -> upload(server, file));
            step("publish", () -> {
                for (int number = 1; number <= 4; number++) {
                    server.publishBuildInfo(record(number), null);
                }
                return numbers(server);
            });
            step("record", () -> described(server.getBuildInfo(NAME, "2", null)));
            step("pattern", () -> server.searchArtifactsByPattern(REPO + ":lib/*.txt").getFiles()
                .stream().sorted().collect(Collectors.joining(" ")));
            step("fetch by build", () -> {
                String spec = "{\"files\": [{\"pattern\": \"" + REPO + "/lib/*\", \"build\": \""
                    + NAME + "/1\", \"flat\": \"true\", \"target\": \"" + folder + "/got/\"}]}";
                new SpecsHelper(new NullLog()).downloadArtifactsBySpec(
                    spec, server, folder.toString());
                return Files.readString(folder.resolve("got/a.txt"));
            });
            step("delete", () -> {
                server.deleteBuilds(NAME, null, false, "2");
                return numbers(server);
            });
            step("retention", () -> {
                BuildRetention retention = new BuildRetention(false);
                retention.setCount(1);
                retention.addBuildNotToBeDiscarded("1");
                server.sendBuildRetention(retention, NAME, null, false);
                return numbers(server);
            });
        } finally {
            remove(folder);
        }
    }

    private static String upload(ArtifactoryManager server, File file) throws Exception {
        ArtifactoryUploadResponse answer = server.upload(new DeployDetails.Builder()
            .file(file).targetRepository(REPO).artifactPath("lib/a.txt")
            .sha1(SHA1).sha256(SHA256).md5(MD5)
            .addProperty("build.name", NAME).addProperty("build.number", "1").build());
        return answer.getPath() + " " + answer.getSize() + " " + answer.getChecksums().getSha256();
    }

    private static BuildInfo record(int number) {
        Module module = new ModuleBuilder().id("library").addArtifact(
            new ArtifactBuilder("a.txt").type("txt").sha1(SHA1).sha256(SHA256).md5(MD5).build())
            .build();
        return new BuildInfoBuilder(NAME).number(String.valueOf(number)).version("1.0.1")
            .startedDate(new Date(1704164645678L + number * 3600_000L)).durationMillis(2500)
            .url("https://ci.example.com/1").addProperty("env", "value").addModule(module).build();
    }

    private static String described(BuildInfo found) {
        Module module = found.getModules().get(0);
        return found.getName() + " " + found.getNumber() + " " + found.getDurationMillis() + " "
            + module.getId() + " " + module.getArtifacts().get(0).getSha1() + " "
            + found.getProperties();
    }

    private static String numbers(ArtifactoryManager server) throws Exception {
        return server.getAllBuildNumbers(NAME, null).buildsNumbers.stream()
            .map(each -> each.getUri()).sorted().collect(Collectors.joining(" "));
    }

    private static void remove(Path folder) throws Exception {
        try (Stream<Path> found = Files.walk(folder)) {
            found.sorted(Comparator.reverseOrder()).forEach(each -> each.toFile().delete());
        }
    }

    private static void step(String name, Callable<Object> what) {
        String value;
        try {
            value = String.valueOf(what.call());
        } catch (Exception error) {
            value = "failed: " + error;
        }
        System.out.println(name + "\t" + value.replace("\n", " "));
    }
}
